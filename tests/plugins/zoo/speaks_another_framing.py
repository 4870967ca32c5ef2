import sys

for _line in sys.stdin:
    print(
        '{"jsonrpc": "2.0", "id": 1, "result": {"protocol": "rpp", "protocolVersion": 0}}',
        flush=True,
    )
