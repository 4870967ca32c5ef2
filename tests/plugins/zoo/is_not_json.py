import speaking


def work(message):
    for _ in range(5):
        speaking.frame(b"{this is no JSON}")


speaking.serve(work=work)
