"""A model server that does what the prompt says: enough of the Anthropic Messages and OpenAI Responses interfaces for Claude Code, Codex and DeepSeek Harness to work a turn against 127.0.0.1.

The last words of the user that begin with `DRIVE` choose the answer: `DRIVE say`, `DRIVE hang` (the answer begins and
ends at `release()`), `DRIVE silent` (not even a first byte before that), `DRIVE tool SHELL WORDS`, `DRIVE ask SHELL
WORDS` (Codex: outside its sandbox), `DRIVE call NAME JSON`, `DRIVE plan`, `DRIVE error STATUS`, `DRIVE overflow …` (the
context is full, once for each wording). After the result of a tool the answer is words. Requests for a summary or a
title get words, or hang while `hold_summaries` is set.
"""
import json, re, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

released = threading.Event()
hold_summaries = threading.Event()
requests = []          # (path, directive) in order
waiting = 0            # answers that have begun and hang
silent = 0             # requests of which not a byte is answered
count = 0
overflows = set()
overflowed = False     # the next request of dsh is the one for a summary


def release():
    released.set()


def directive(messages):
    """The newest `DRIVE …` line said by the user, and whether a tool has answered since."""
    word, answered = 'say', False
    for message in messages:
        content = message.get('content')
        if message.get('type') in ('function_call_output', 'custom_tool_call_output') or message.get('role') == 'tool':
            answered = True
        if message.get('role') != 'user':
            continue
        for part in [{'type': 'text', 'text': content}] if isinstance(content, str) else content or []:
            if part.get('type') == 'tool_result':
                answered = True
            found = re.findall(r'^\s*DRIVE (.*)$', part.get('text') or '', re.M) if part.get('type') in ('text', 'input_text') else []
            if found:
                word, answered = found[-1].strip(), False
    return word, answered


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.json({'data': [], 'models': []})

    def do_HEAD(self):
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def json(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, name, value):
        text = (f'event: {name}\n' if name else '') + f'data: {value if isinstance(value, str) else json.dumps(value)}\n\n'
        self.wfile.write(('%x\r\n' % len(text.encode())).encode() + text.encode() + b'\r\n')
        self.wfile.flush()

    def begin(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()

    def finish_stream(self):
        self.wfile.write(b'0\r\n\r\n')
        self.wfile.flush()

    def wait_silently(self):
        global silent
        silent += 1
        try:
            released.wait(600)
        finally:
            silent -= 1

    def hang(self):
        global waiting
        waiting += 1
        try:
            while not released.wait(0.2):
                self.event('ping', {'type': 'ping'})  # notices a client that left
        finally:
            waiting -= 1

    def do_POST(self):
        global count
        size = int(self.headers.get('Content-Length') or 0)
        raw = self.rfile.read(size)
        try:
            body = json.loads(raw)
        except ValueError:
            return self.json({})
        count += 1
        try:
            if self.path.startswith('/v1/messages/count_tokens'):
                self.json({'input_tokens': 10})
            elif self.path.startswith('/v1/messages'):
                self.messages(body)
            elif self.path.startswith('/v1/responses'):
                self.codex(body)
            else:
                requests.append((self.path, None))
                self.json({})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def messages(self, body):
        word, answered = directive(body.get('messages', []))
        tools = {tool.get('name') for tool in body.get('tools') or []}
        summary = len(tools) == 0 or bool(re.search('detailed summary|TEXT ONLY', json.dumps(body.get('messages', [])[-1:])))
        global overflowed
        if word.startswith('overflow') and word not in overflows and not summary:
            overflowed = True
            overflows.add(word)
            return self.json({'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'maximum context length exceeded'}}, 400)
        if overflowed:
            summary, overflowed = True, False
        requests.append((self.path, 'summary' if summary else word))
        if not summary and word.startswith('error') and not answered:
            status = int(word.split()[1])
            kind = {400: 'invalid_request_error', 401: 'authentication_error', 529: 'overloaded_error'}.get(status, 'api_error')
            return self.json({'type': 'error', 'error': {'type': kind, 'message': 'made up'}}, status)
        blocks, stop = [{'type': 'text', 'text': 'Done as told.'}], 'end_turn'
        hangs = False
        if summary:
            blocks[0]['text'] = '<summary>What was said.</summary>'
            hangs = hold_summaries.is_set()
        elif answered:
            pass
        elif word == 'hang':
            hangs = True
        elif word.startswith('tool '):
            blocks, stop = [{'type': 'tool_use', 'id': f'toolu_{count:04}', 'name': 'Bash' if 'Bash' in tools else 'bash', 'input': {'command': word[5:], 'description': 'as told'}}], 'tool_use'
        elif word.startswith('call '):
            _, name, value = word.split(' ', 2)
            blocks, stop = [{'type': 'tool_use', 'id': f'toolu_{count:04}', 'name': name, 'input': json.loads(value)}], 'tool_use'
        usage = {'input_tokens': 100, 'output_tokens': 10, 'cache_read_input_tokens': 0, 'cache_creation_input_tokens': 0}
        message = {'id': f'msg_{count:04}', 'type': 'message', 'role': 'assistant', 'model': body.get('model'), 'content': [], 'stop_reason': None, 'stop_sequence': None, 'usage': usage}
        if not body.get('stream'):
            if hangs:
                released.wait(600)
            return self.json({**message, 'content': blocks, 'stop_reason': stop})
        if word == 'silent' and not answered and not summary:
            self.wait_silently()
        self.begin()
        self.event('message_start', {'type': 'message_start', 'message': message})
        if hangs:
            blocks.insert(0, {'type': 'text', 'text': 'Well, '})
        for index, block in enumerate(blocks):
            if hangs and index == 1:
                self.hang()
            if block['type'] == 'text':
                self.event('content_block_start', {'type': 'content_block_start', 'index': index, 'content_block': {'type': 'text', 'text': ''}})
                self.event('content_block_delta', {'type': 'content_block_delta', 'index': index, 'delta': {'type': 'text_delta', 'text': block['text']}})
            else:
                self.event('content_block_start', {'type': 'content_block_start', 'index': index, 'content_block': {**block, 'input': {}}})
                self.event('content_block_delta', {'type': 'content_block_delta', 'index': index, 'delta': {'type': 'input_json_delta', 'partial_json': json.dumps(block['input'])}})
            self.event('content_block_stop', {'type': 'content_block_stop', 'index': index})
        self.event('message_delta', {'type': 'message_delta', 'delta': {'stop_reason': stop, 'stop_sequence': None}, 'usage': usage})
        self.event('message_stop', {'type': 'message_stop'})
        self.finish_stream()

    def codex(self, body):
        word, answered = directive(body.get('input') or [])
        names = {tool.get('name') for tool in body.get('tools') or []}
        summary = 'CONTEXT CHECKPOINT' in json.dumps((body.get('input') or [])[-1:]) or not names
        requests.append((self.path, 'summary' if summary else word))
        if word.startswith('error') and not answered and not summary:
            return self.json({'error': {'message': 'made up', 'type': 'made_up', 'code': None}}, int(word.split()[1]))
        call, text, hangs = None, 'Done as told.', False
        if summary:
            text, hangs = 'What was said.', hold_summaries.is_set()
        elif answered:
            pass
        elif word == 'hang':
            hangs = True
        elif word == 'plan':
            text = '<proposed_plan>\n1. One.\n2. Two.\n</proposed_plan>'
        elif word.startswith('tool '):
            call = ('exec_command', {'cmd': word[5:], 'yield_time_ms': 20000}) if 'exec_command' in names else ('shell_command', {'command': word[5:]})
        elif word.startswith('ask '):
            call = ('exec_command', {'cmd': word[4:], 'sandbox_permissions': 'require_escalated', 'justification': 'as told'})
        elif word.startswith('call '):
            _, name, value = word.split(' ', 2)
            call = (name, json.loads(value))
        if word == 'silent' and not answered and not summary:
            self.wait_silently()
        self.begin()
        answer = f'resp_{count:04}'
        self.event('response.created', {'type': 'response.created', 'response': {'id': answer}})
        if call:
            item = {'type': 'function_call', 'id': f'fc_{count:04}', 'call_id': f'call_{count:04}', 'name': call[0], 'arguments': json.dumps(call[1])}
            self.event('response.output_item.done', {'type': 'response.output_item.done', 'output_index': 0, 'item': item})
        else:
            item = {'type': 'message', 'id': f'item_{count:04}', 'role': 'assistant', 'content': [{'type': 'output_text', 'text': ('Well, ' if hangs else '') + text}]}
            self.event('response.output_item.added', {'type': 'response.output_item.added', 'output_index': 0, 'item': {**item, 'content': []}})
            self.event('response.output_text.delta', {'type': 'response.output_text.delta', 'output_index': 0, 'content_index': 0, 'item_id': item['id'], 'delta': 'Well, ' if hangs else text})
            if hangs:
                self.hang()
            self.event('response.output_item.done', {'type': 'response.output_item.done', 'output_index': 0, 'item': item})
        self.event('response.completed', {'type': 'response.completed', 'response': {'id': answer, 'usage': {'input_tokens': 100, 'input_tokens_details': {'cached_tokens': 0}, 'output_tokens': 10, 'output_tokens_details': {'reasoning_tokens': 0}, 'total_tokens': 110}}})
        self.finish_stream()


def serve(port=0):
    server = ThreadingHTTPServer(('127.0.0.1', port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
