import speaking


def work(message):
    speaking.write(id=None, error={"code": -32700, "message": "I could not read \x1b[31mthat."})
    speaking.write(id=None, result="to whom it may concern")


speaking.serve(work=work)
