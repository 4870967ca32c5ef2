import speaking


def work(message):
    while True:
        speaking.write(id=None, error={"code": 1, "message": "nobody " * 10})


speaking.serve(work=work)
