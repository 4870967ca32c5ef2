import speaking

speaking.serve(work=lambda message: speaking.write(id=str(message["id"]), result="yours?"))
