import speaking

speaking.serve(work=lambda message: None)
