"""drive.py LULLWATCH CLIENTS SCRATCH [claude] [codex] [dsh]: called by `run`, inside a network of its own.

Takes the real clients through prompts, approvals, questions, interrupts, compactions, sub-agents, exits, kills and
resumes against `mock.py`, and after each step compares what `lullwatch --once --json` says with what is so: by what
was done to the client, what its screen shows and what the model server is asked. Nothing of lullwatch is asked to know
what is so. The windows are short (5 s, 1 h), so that lulls happen while one waits.
"""
import json, os, pathlib, re, shutil, signal, subprocess, sys, threading, time
import mock

BIN, CLIENTS, SCRATCH = [pathlib.Path(p).resolve() for p in sys.argv[1:4]]
ONLY = sys.argv[4:] or ['claude', 'codex', 'dsh']
HOME, WORK, DB = SCRATCH / 'home', SCRATCH / 'home/w', SCRATCH / 'db/l.db'
LIMIT = 40
rows, bad = [], 0


def wait(what, condition, limit=LIMIT):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.1)
    raise SystemExit(f'never seen: {what}\n{screen.text() if screen else ""}')


class Screen:
    """A client in a tmux of our own."""

    count = 0

    def __init__(self, name, command, env):
        Screen.count += 1
        self.name = name = f'{name}{Screen.count}'
        exports = ' '.join(f"{k}='{v}'" for k, v in env.items())
        self.tmux('new-session', '-d', '-s', name, '-x', '120', '-y', '40', f'cd {WORK}; env {exports} {command}; left=$?; clear; echo "LEFT with $left"; exec sleep 1000')

    @staticmethod
    def tmux(*args, check=True):
        return subprocess.run(['tmux', '-L', f'lullwatch-drive-{os.getpid()}', '-f', '/dev/null', *args], check=check, capture_output=True, text=True).stdout

    def keys(self, *keys):
        self.tmux('send-keys', '-t', self.name, *keys)

    def say(self, words):
        self.tmux('send-keys', '-t', self.name, '-l', words)
        time.sleep(0.7)
        self.keys('Enter')

    def text(self):
        return self.tmux('capture-pane', '-p', '-t', self.name)

    def sees(self, pattern, limit=LIMIT):
        return wait(f'{pattern!r} on the screen', lambda: re.search(pattern, self.text()), limit)

    def pid(self):
        """The client's own process: the youngest descendant in a line from the pane."""
        pane = int(self.tmux('display-message', '-p', '-t', self.name, '#{pane_pid}'))
        return child(pane)


def child(pid):
    found = subprocess.run(['pgrep', '-P', str(pid)], capture_output=True, text=True).stdout.split()
    return int(found[0]) if found else None


screen = None


def look(*more):
    env = {'HOME': str(HOME), 'PATH': os.environ['PATH'], **{k: str(v) for k, v in homes.items()}}
    out = subprocess.run([BIN, '--once', '--json', '--children', '--db', DB, *more], env=env, capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(out.stderr)
    return json.loads(out.stdout)


homes = {}


def field(row, path):
    for part in path.split('.'):
        row = row and row.get(part)
    return row


def step(client, what, truth, pick=None):
    """One row of the table: what is so, by what the drive did and saw of the client, and what is said of it."""
    global bad
    seen = look()
    mine = [s for s in seen['sessions'] if s['agent'] == client and s['parent_native_id'] is None]
    row = pick(seen['sessions']) if pick else max(mine, key=lambda s: s['started_at'] or '', default=None)
    ours, wrong = {}, []
    for name, right in truth.items():
        got = seen['audit']['overrides'] + seen['audit']['overrides_after_exit'] if name == 'overrides' else len(mine) if name == 'sessions' else field(row, name)
        ours[name] = got
        if not (got in right if isinstance(right, (set, tuple, list)) else got == right):
            wrong.append(name)
    bad += bool(wrong)
    rows.append((client, what, truth, ours, wrong))
    print(f'{"ok " if not wrong else "NOT"} {client:6} {what:55} ' + ' '.join(f'{k}={ours[k]!r}' + (f' (right: {truth[k]!r})' if k in wrong else '') for k in truth), flush=True)
    if wrong and os.environ.get('DRIVE_VERBOSE'):
        print(json.dumps(row, indent=1))
    return row


def show(value):
    """A value of a cell; of several right ones all."""
    if isinstance(value, tuple):
        return ' or '.join(show(one) for one in value)
    return {None: 'null', True: 'yes', False: 'no'}.get(value, value) if value is None or isinstance(value, (bool, str)) else str(value)


def hold():
    mock.released.clear()


def claude():
    global screen
    home = HOME / '.claude'
    home.mkdir(parents=True)
    key = 'sk-ant-' + '0' * 30
    (HOME / '.claude.json').write_text(json.dumps({'hasCompletedOnboarding': True, 'theme': 'dark', 'numStartups': 5, 'lastOnboardingVersion': '99.0.0',
        'customApiKeyResponses': {'approved': [key[-20:]], 'rejected': []}, 'bypassPermissionsModeAccepted': True,
        'projects': {str(WORK): {'hasTrustDialogAccepted': True, 'hasCompletedProjectOnboarding': True, 'allowedTools': []}}}))
    (home / 'settings.json').write_text(json.dumps({'permissions': {'allow': ['Bash(./work:*)'], 'defaultMode': 'default'}}))
    env = {'HOME': HOME, 'ANTHROPIC_BASE_URL': f'http://127.0.0.1:{PORT}', 'ANTHROPIC_API_KEY': key, 'DISABLE_AUTOUPDATER': '1', 'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1', 'PATH': os.environ['PATH']}
    program = CLIENTS / 'node_modules/@anthropic-ai/claude-code-linux-x64/claude'

    def registry():
        found = [json.loads(f.read_text()) for f in (home / 'sessions').glob('*.json')]
        return max(found, key=lambda entry: entry.get('updatedAt') or 0, default={})  # those of the killed stay

    def state(word, press=None):
        def said():
            if press:
                screen.keys(press)
                time.sleep(0.4)
            return registry().get('status') == word
        wait(f'registry says {word}', said)
        time.sleep(0.5)  # the lines of a turn come up to this much behind the registry

    screen = Screen('claude', f'{program} --permission-mode default', env)
    if screen.sees('for agents|shortcuts|keep manual').group() == 'keep manual':
        screen.keys('Escape')
        time.sleep(1)
        screen.keys('Enter')
        screen.sees('for agents|shortcuts')
    step('claude', 'started, nothing said', {'sessions': 0})
    hold()
    screen.say('DRIVE hang')
    wait('a hanging answer', lambda: mock.waiting)
    wait('a transcript', lambda: list((home / 'projects').rglob('*.jsonl')))
    time.sleep(0.5)
    step('claude', 'the model answers', {'status': 'running', 'phase': 'working', 'turn': 'open', 'attention': False, 'process.alive': True})
    time.sleep(6)
    step('claude', '… and has been silent past the live window', {'status': 'running', 'phase': 'working', 'attention': False})
    mock.release()
    state('idle')
    step('claude', 'it has answered', {'status': 'running', 'phase': 'your turn', 'turn': 'closed', 'last_turn': 'completed', 'attention': False, 'answers': 1, 'prompts': 1})
    time.sleep(6)
    step('claude', '… past the live window', {'status': 'idle', 'phase': 'your turn', 'process.alive': True})
    screen.say('DRIVE tool ./work 9')
    state('busy')
    time.sleep(7)
    step('claude', 'a shell command runs, silent past the live window', {'status': 'running', 'phase': 'tool', 'attention': False})
    state('idle')
    step('claude', 'it is done', {'status': 'running', 'phase': 'your turn', 'tool_calls': 1})
    screen.say('DRIVE tool touch made')
    screen.sees('Do you want to proceed')
    step('claude', 'asks for permission', {'status': 'running', 'phase': 'needs approval', 'attention': True, 'process.state': 'waiting'})
    time.sleep(6)
    step('claude', '… past the live window', {'status': 'idle', 'phase': 'needs approval', 'attention': True})
    screen.keys('Enter')
    state('idle')
    step('claude', 'granted, and done', {'status': 'running', 'phase': 'your turn', 'attention': False})
    screen.say('DRIVE tool touch other')
    screen.sees('Do you want to proceed')
    screen.keys('Escape')
    state('idle')
    step('claude', 'refused', {'status': 'running', 'phase': 'your turn', 'turn': 'interrupted', 'attention': False})
    screen.say('DRIVE call AskUserQuestion ' + json.dumps({'questions': [{'question': 'Keep the header?', 'header': 'Header', 'multiSelect': False, 'options': [{'label': 'Keep', 'description': 'as is'}, {'label': 'Hide', 'description': 'away'}]}]}))
    screen.sees('Keep the header')
    state('waiting')
    step('claude', 'asks a question', {'status': 'running', 'phase': 'question', 'attention': True})
    state('idle', 'Enter')
    step('claude', 'answered', {'phase': 'your turn', 'attention': False})
    hold()
    screen.say('DRIVE hang')
    wait('a hanging answer', lambda: mock.waiting)
    screen.sees('Well')
    screen.keys('Escape')
    state('idle')
    step('claude', 'Esc while it answers', {'status': 'running', 'phase': 'your turn', 'attention': False})
    screen.keys('C-u')
    screen.say('DRIVE silent')
    wait('a silent request', lambda: mock.silent)
    step('claude', 'no token yet', {'status': 'running', 'phase': 'working', 'attention': False})
    screen.keys('Escape')
    state('idle')
    step('claude', 'Esc before the first token', {'status': 'running', 'phase': 'your turn', 'attention': False})
    screen.keys('C-u')
    mock.release()
    time.sleep(1)
    hold()
    screen.say('DRIVE call Agent ' + json.dumps({'description': 'look around', 'prompt': 'DRIVE hang', 'subagent_type': 'general-purpose'}))
    wait('a hanging answer', lambda: mock.waiting)
    time.sleep(1)
    step('claude', 'a sub-agent works', {'status': 'running', 'phase': ('working', 'tool'), 'children': 1, 'active_children': 1, 'attention': False})
    time.sleep(6)
    step('claude', '… silent past the live window', {'status': 'running', 'phase': ('working', 'tool'), 'attention': False})
    mock.release()
    state('idle')
    time.sleep(1)
    step('claude', 'the sub-agent has returned', {'status': 'running', 'phase': 'your turn', 'children': 1, 'active_children': 0, 'attention': False})
    hold()
    mock.hold_summaries.set()
    screen.say('/compact')
    wait('a hanging summary', lambda: mock.waiting)
    time.sleep(6)
    step('claude', 'compacts, silent past the live window', {'status': 'running', 'phase': ('compacting', 'working'), 'attention': False})
    mock.hold_summaries.clear()
    mock.release()
    state('idle')
    step('claude', 'compacted', {'status': 'running', 'phase': 'your turn', 'compaction.bracket': 'closed', 'compaction.count': 1, 'attention': False})
    screen.say('DRIVE error 400')
    screen.sees('made up')
    state('idle')
    step('claude', 'the provider says 400', {'status': 'running', 'phase': 'error', 'last_turn': 'error', 'attention': True})
    screen.say('/exit')
    screen.sees('LEFT with')
    first = step('claude', '/exit after an error', {'status': 'completed', 'phase': 'ended', 'reason.basis': 'observed', 'attention': True, 'process.alive': (False, None)})
    screen = Screen('claude', f'{program} --permission-mode plan --resume {first["native_id"]}', env)
    screen.sees('plan mode on')
    step('claude', 'resumed, nothing said', {'status': 'completed', 'overrides': START})
    screen.say('DRIVE call ExitPlanMode ' + json.dumps({'plan': '1. One.\n2. Two.'}))
    state('waiting')
    time.sleep(0.5)
    step('claude', 'a plan waits for approval', {'status': 'running', 'phase': 'question', 'attention': True, 'overrides': START + 1})
    screen.keys('Escape')
    state('idle')
    step('claude', 'plan refused', {'phase': 'your turn', 'attention': False, 'overrides': START + 1})
    screen.say('DRIVE tool ./work 300')
    wait('the command', lambda: subprocess.run(['pgrep', '-f', 'work 300'], stdout=subprocess.DEVNULL).returncode == 0)
    state('busy')
    step('claude', 'a long command runs', {'status': 'running', 'phase': 'tool'})
    os.kill(screen.pid(), signal.SIGKILL)
    screen.sees('LEFT with')
    step('claude', 'kill -9 inside the turn', {'status': 'completed', 'phase': 'ended', 'reason.basis': 'observed', 'attention': True, 'overrides': START + 1})
    screen = Screen('claude', f'{program} --permission-mode default --resume {first["native_id"]}', env)
    screen.sees('for agents|shortcuts')
    before = len(mock.requests)
    screen.say('DRIVE say')
    wait('a request', lambda: len(mock.requests) > before)
    state('idle')
    step('claude', 'resumed after the kill', {'status': 'running', 'phase': 'your turn', 'overrides': START + 2, 'attention': False})
    os.kill(screen.pid(), signal.SIGTERM)
    screen.sees('LEFT with')
    step('claude', 'SIGTERM at rest', {'status': 'completed', 'phase': 'ended', 'reason.basis': 'observed', 'attention': False})
    done = subprocess.run([program, '-p', 'DRIVE say'], env={k: str(v) for k, v in env.items()}, cwd=WORK, capture_output=True, text=True, timeout=60)
    step('claude', '-p, done', {'status': 'completed', 'kind': 'sdk', 'last_turn': 'completed', 'attention': False})


def codex():
    global screen
    home = HOME / '.codex'
    home.mkdir(parents=True)
    (home / 'config.toml').write_text(f"""model = "mock-model"
model_reasoning_effort = "low"
model_provider = "mock"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{PORT}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
[projects."{WORK}"]
trust_level = "trusted"
""")
    hooks = subprocess.run([BIN, 'hook', '--print-config', 'codex', '--db', DB], env={'HOME': str(HOME), 'PATH': os.environ['PATH']}, capture_output=True, text=True, check=True)
    (home / 'hooks.json').write_text(hooks.stdout)
    env = {'HOME': HOME, 'PATH': os.environ['PATH'], 'MOCK_KEY': 'x', 'TERM': 'xterm-256color'}
    program = CLIENTS / 'node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex'
    alone = f'{program} --no-daemon --dangerously-bypass-hook-trust'

    def said(count):
        """The turn number `count` is over, by the rollout."""
        def over():
            return sum(f.read_text().count('"type":"task_complete"') + f.read_text().count('"type":"turn_aborted"') for f in (home / 'sessions').rglob('*.jsonl')) >= count
        wait(f'{count} turns over', over)
        time.sleep(0.3)

    turns = [0]

    def next_turn():
        turns[0] += 1
        said(turns[0])

    def asked(words):
        before = len(mock.requests)
        screen.say(words)
        wait('a request', lambda: len(mock.requests) > before)

    screen = Screen('codex', alone, env)
    screen.sees('shortcuts')
    time.sleep(3)
    screen.keys('C-u')
    step('codex', 'started, nothing said', {'sessions': 0})
    hold()
    asked('DRIVE hang')
    wait('a hanging answer', lambda: mock.waiting)
    time.sleep(0.5)
    step('codex', 'the model answers', {'status': 'running', 'phase': 'working', 'turn': 'open', 'attention': False, 'process.alive': True})
    time.sleep(6)
    step('codex', '… past the live window (a lock is no work)', {'status': 'idle', 'phase': 'working', 'attention': False, 'process.alive': True})
    mock.release()
    next_turn()
    step('codex', 'it has answered', {'status': 'running', 'phase': 'your turn', 'last_turn': 'completed', 'attention': False, 'answers': 1, 'prompts': 1})
    asked('DRIVE tool ./work 8')
    time.sleep(1)
    step('codex', 'a shell command runs', {'status': 'running', 'phase': 'tool', 'attention': False})
    next_turn()
    step('codex', 'it is done', {'status': 'running', 'phase': 'your turn', 'tool_calls': 1})
    asked('DRIVE ask ./work 6')
    screen.sees('Yes, proceed')
    step('codex', 'asks for permission', {'phase': 'needs approval', 'attention': True})
    time.sleep(2)
    screen.keys('Enter')
    wait('the command', lambda: subprocess.run(['pgrep', '-f', 'work 6'], stdout=subprocess.DEVNULL).returncode == 0)
    time.sleep(0.5)
    step('codex', 'granted, the command runs', {'phase': 'tool', 'attention': False})
    next_turn()
    step('codex', 'done', {'status': 'running', 'phase': 'your turn', 'attention': False})
    asked('DRIVE ask touch other')
    screen.sees('Yes, proceed')
    screen.keys('Escape')
    next_turn()
    step('codex', 'refused at once', {'phase': 'your turn', 'attention': False, 'last_turn': 'aborted'})
    hold()
    asked('DRIVE hang')
    wait('a hanging answer', lambda: mock.waiting)
    screen.sees('Well')
    screen.keys('Escape')
    next_turn()
    step('codex', 'Esc while it answers', {'status': 'running', 'phase': 'your turn', 'last_turn': 'aborted', 'attention': False})
    screen.keys('C-u')
    mock.release()
    screen.keys('BTab')
    screen.sees('Plan mode')
    asked('DRIVE call request_user_input ' + json.dumps({'questions': [{'id': 'a', 'header': 'Header', 'question': 'Keep the header?', 'options': [{'label': 'Keep', 'description': 'as is'}, {'label': 'Hide', 'description': 'away'}]}]}))
    screen.sees('1. Keep')
    time.sleep(0.5)
    step('codex', 'asks a question', {'status': 'running', 'phase': 'question', 'attention': True})
    screen.keys('Enter')
    next_turn()
    asked('DRIVE plan')
    next_turn()
    screen.sees('Implement this plan')
    step('codex', 'a plan waits for approval', {'status': 'running', 'phase': 'question', 'attention': True})
    screen.keys('Escape')
    screen.keys('BTab')
    hold()
    mock.hold_summaries.set()
    screen.say('/compact')
    wait('a hanging summary', lambda: mock.waiting)
    time.sleep(0.5)
    step('codex', 'compacts', {'status': 'running', 'phase': 'compacting', 'compaction.bracket': 'open', 'attention': False})
    mock.hold_summaries.clear()
    mock.release()
    next_turn()
    step('codex', 'compacted', {'phase': 'your turn', 'compaction.bracket': 'closed', 'compaction.trigger': 'manual', 'compaction.count': 1, 'attention': False})
    asked('DRIVE error 401')
    next_turn()
    step('codex', 'the provider says 401', {'status': 'running', 'phase': 'error', 'last_turn': 'error', 'attention': True})
    screen.say('/quit')
    screen.sees('LEFT with')
    first = step('codex', '/quit after an error', {'status': 'completed', 'phase': 'ended', 'reason.basis': 'observed', 'attention': True, 'overrides': START})
    screen = Screen('codex', f'{alone} resume {first["native_id"]}', env)
    screen.sees('shortcuts')
    time.sleep(3)
    step('codex', 'resumed, nothing said', {'status': 'completed', 'overrides': START})
    asked('DRIVE tool ./work 301')
    wait('the command', lambda: subprocess.run(['pgrep', '-f', 'work 301'], stdout=subprocess.DEVNULL).returncode == 0)
    time.sleep(0.5)
    step('codex', 'resumed, a command runs', {'status': 'running', 'phase': 'tool', 'overrides': START + 1, 'attention': False})
    os.kill(screen.pid(), signal.SIGKILL)
    screen.sees('LEFT with')
    step('codex', 'kill -9 inside the turn', {'status': 'completed', 'phase': 'ended', 'reason.basis': 'observed', 'attention': True, 'overrides': START + 1})
    subprocess.run([program, 'exec', '--skip-git-repo-check', 'DRIVE say'], env={k: str(v) for k, v in env.items()}, cwd=WORK, capture_output=True, text=True, timeout=60)
    step('codex', 'exec, done between two looks', {'status': 'completed', 'kind': 'sdk', 'last_turn': 'completed', 'attention': False})
    left_behind = set((home / 'thread-writer-locks').glob('*.lock'))  # by the one that was killed
    screen = Screen('codex', str(program), env)
    screen.sees('Continue without trusting')
    screen.keys('Down', 'Down', 'Enter')
    screen.sees('shortcuts')
    time.sleep(3)
    hold()
    asked('DRIVE hang')
    wait('a hanging answer', lambda: mock.waiting)
    time.sleep(0.5)
    step('codex', 'daemon: the model answers', {'status': 'running', 'phase': 'working', 'process.alive': True, 'attention': False})
    screen.say('/quit')
    screen.sees('LEFT with')
    step('codex', 'daemon: the terminal has left, work goes on', {'status': ('running', 'idle'), 'phase': 'working', 'process.alive': True})
    mock.release()
    wait('unloaded', lambda: set((home / 'thread-writer-locks').glob('*.lock')) <= left_behind or look() and False, 120)
    time.sleep(0.5)
    step('codex', 'daemon: unloaded after a minute alone', {'status': 'completed', 'phase': 'ended', 'reason.basis': 'observed', 'attention': False})
    subprocess.run([program, 'app-server', 'daemon', 'stop'], env={k: str(v) for k, v in env.items()}, capture_output=True)


class Acp:
    """`dsh acp`, a client of which is an editor: JSON-RPC, a line a message."""

    def __init__(self, program, env):
        self.child = subprocess.Popen([program, 'acp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={k: str(v) for k, v in env.items()}, cwd=WORK, text=True)
        self.answers, self.asked, self.count = {}, [], 0
        threading.Thread(target=self.read, daemon=True).start()
        self.call('initialize', protocolVersion=1, clientCapabilities={})

    def read(self):
        for line in self.child.stdout:
            message = json.loads(line)
            if 'method' in message and 'id' in message:
                self.asked.append(message)
            elif 'id' in message:
                self.answers[message['id']] = message

    def send(self, method, **params):
        self.count += 1
        self.child.stdin.write(json.dumps({'jsonrpc': '2.0', 'id': self.count, 'method': method, 'params': params}) + '\n')
        self.child.stdin.flush()
        return self.count

    def call(self, method, **params):
        number = self.send(method, **params)
        return self.answered(number, method)

    def answered(self, number, method='a prompt'):
        answer = wait(f'the answer to {method}', lambda: self.answers.get(number))
        time.sleep(0.3)
        return answer.get('result') or answer

    def notify(self, method, **params):
        self.child.stdin.write(json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params}) + '\n')
        self.child.stdin.flush()


def dsh():
    global screen
    screen = None
    home = HOME / '.dsh'
    env = {'HOME': HOME, 'DSH_HOME': home, 'PATH': os.environ['PATH'], 'DEEPSEEK_API_KEY': 'x', 'DEEPSEEK_BASE_URL': f'http://127.0.0.1:{PORT}', 'DSH_TELEMETRY_DISABLED': '1', 'DSH_PERMISSION_MODE': 'danger-full-access'}
    program = next((CLIENTS / 'v/lib').glob('python3*/site-packages/deepseek_harness_runtime/runtime/deepseek-harness-sdk-runtime-linux-x64'))
    client = Acp(program, env)
    session = client.call('session/new', cwd=str(WORK), mcpServers=[])['sessionId']

    def say(words):
        return client.send('session/prompt', sessionId=session, prompt=[{'type': 'text', 'text': words}])

    hold()
    prompt = say('DRIVE hang')
    wait('a hanging answer', lambda: mock.waiting)
    time.sleep(0.5)
    step('dsh', 'the model answers', {'status': 'running', 'phase': 'working', 'turn': 'open', 'attention': False, 'process.alive': True, 'notices': ([],)})
    time.sleep(6)
    step('dsh', '… past the live window (a lock is no work)', {'status': 'idle', 'phase': 'working', 'process.alive': True})
    mock.release()
    client.answered(prompt)
    step('dsh', 'it has answered', {'status': 'running', 'phase': 'your turn', 'last_turn': 'completed', 'attention': False, 'prompts': 1, 'answers': 1})
    prompt = say('DRIVE tool ./work 4')
    wait('the command', lambda: subprocess.run(['pgrep', '-f', 'work 4'], stdout=subprocess.DEVNULL).returncode == 0)
    time.sleep(0.5)
    step('dsh', 'a shell command runs', {'status': 'running', 'phase': 'tool', 'attention': False})
    client.answered(prompt)
    step('dsh', 'it is done', {'phase': 'your turn', 'tool_calls': 1, 'notices': ([],)})
    hold()
    prompt = say('DRIVE hang')
    wait('a hanging answer', lambda: mock.waiting)
    client.notify('session/cancel', sessionId=session)
    client.answered(prompt)
    step('dsh', 'cancelled while it answers', {'status': 'running', 'phase': 'your turn', 'last_turn': 'aborted', 'attention': False})
    mock.release()
    client.answered(say('DRIVE error 401'))
    step('dsh', 'the provider says 401', {'status': 'running', 'phase': 'error', 'last_turn': 'error', 'attention': True})
    hold()
    mock.hold_summaries.set()
    prompt = say('DRIVE overflow once')
    wait('a hanging summary', lambda: mock.waiting or mock.silent)
    time.sleep(0.5)
    step('dsh', 'compacts', {'status': 'running', 'phase': 'compacting', 'compaction.bracket': 'open', 'compaction.blocking': True, 'attention': False})
    mock.hold_summaries.clear()
    mock.release()
    client.answered(prompt)
    step('dsh', 'compacted', {'phase': 'your turn', 'compaction.bracket': 'closed', 'compaction.count': 1})
    hold()
    mock.hold_summaries.set()
    say('DRIVE overflow again')
    wait('a hanging summary', lambda: mock.waiting or mock.silent)
    time.sleep(0.5)
    client.child.kill()
    client.child.wait()
    mock.hold_summaries.clear()
    mock.release()
    step('dsh', 'kill -9 while it compacts', {'status': 'completed', 'phase': 'ended', 'reason.basis': 'observed', 'compaction.bracket': 'open', 'attention': True, 'overrides': START})
    client = Acp(program, env)
    client.call('session/resume', sessionId=session, cwd=str(WORK), mcpServers=[])
    time.sleep(0.5)
    step('dsh', 'resumed, nothing said', {'compaction.bracket': 'stale', 'compaction.blocking': False, 'process.alive': True, 'overrides': START})
    client.answered(say('DRIVE say'))
    step('dsh', 'resumed and answered', {'status': 'running', 'phase': 'your turn', 'overrides': START + 1, 'attention': False})
    client.child.stdin.close()
    client.child.wait()
    step('dsh', 'the editor has left', {'status': 'completed', 'phase': 'ended', 'reason.basis': 'observed', 'attention': False})
    subprocess.run([program, 'headless', 'DRIVE say'], env={k: str(v) for k, v in env.items()}, cwd=WORK, capture_output=True, timeout=60)
    step('dsh', 'headless, done between two looks', {'status': 'running', 'phase': 'your turn', 'last_turn': 'completed', 'attention': False})


os.makedirs(WORK)
(WORK / 'work').write_text('#!/bin/sh\nsleep "$1"\n')
(WORK / 'work').chmod(0o755)
os.makedirs(DB.parent, mode=0o700)
server = mock.serve()
PORT = server.server_address[1]
look('--live-window', '5s', '--ended-window', '1h')
try:
    for client in ONLY:
        audit = look()['audit']
        START = audit['overrides'] + audit['overrides_after_exit']  # the audit is over the whole store
        globals()[client]()
finally:
    Screen.tmux('kill-server', check=False)
with open(SCRATCH / 'table.md', 'w') as table:
    print('| client | step | truth | ours |\n|---|---|---|---|', file=table)
    for client, what, truth, ours, wrong in rows:
        said = [', '.join(f'{name} {show(value)}' for name, value in cells.items()) for cells in (truth, ours)]
        print(f'| {client} | {what} | {said[0]} | {said[1]}{" **differs**" if wrong else ""} |', file=table)
print(len(rows), 'steps,', bad, 'differ')
sys.exit(1 if bad else 0)
