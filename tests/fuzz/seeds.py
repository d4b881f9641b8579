"""seeds.py CORPUS FOLDER...: a corpus for the targets from transcripts below these folders: one folder of CORPUS a target.

An adapter's input begins with a byte that says which file of its layout it is, and one that says where it is restarted.
"""
import hashlib, os, sys

corpus, folders = sys.argv[1], sys.argv[2:]
AGENT = {'.claude': 'claude', '.codex': 'codex', '.dsh': 'dsh'}


def put(target, data):
    os.makedirs(f'{corpus}/{target}', exist_ok=True)
    with open(f'{corpus}/{target}/{hashlib.sha1(data).hexdigest()}', 'wb') as file:
        file.write(data)


for path in (os.path.join(base, name) for top in folders for base, _, names in os.walk(top) for name in names):
    agent = next((agent for part, agent in AGENT.items() if f'/{part}/' in path), 'dsh' if 'dsh' in path else None)
    data = open(path, 'rb').read(1 << 16)
    if path.endswith(('.zst', '.zstd')):
        put('zstd_reader', b'\x01' + data)
    elif agent and path.endswith(('.jsonl', '.json')):
        place = 1 if '/agent-' in path else 4 if 'session_index' in path else 0
        put(agent, bytes([place, len(data) % 251]) + data)
