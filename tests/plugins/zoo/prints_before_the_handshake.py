import speaking

speaking.raw(b"Welcome to my plugin!\nLoading models: 100 %\n\n")
speaking.serve()
