"""A person's terminal around a program: `telex run`, and the other commands that use it.

`program_run.run` puts a program on a terminal of its own and joins that one with the person's: keys
in, bytes out, size, signals, stops. `telex record` is the same with a witness. Two directions, two
words: `program_output` comes from the program and ends in `write_to_terminal`; `person_input` comes
from the person's terminal and ends in `write_to_program`.

    program_run       the whole run, from the first key to the exit code
    person_terminal   the person's terminal: raw, and back again on every way out
    mode_tracker      the modes that a program has set on it, and the bytes that undo them
    terminal_io       non-blocking reading and writing of descriptors that we share with the shell
    job_control       stopping with the program, and going on with it
    session_leader    the small program that leads the child's session
JSON escapes and pages in it, as filters between the two terminals:
    escape_filter     finds frames in the output and replies in the input; loads the rest
    page_filter       the same for pages; page_opener asks the person and opens the browser
    query_replies     replies of the person's terminal: to our queries, and to the program's DA1
    output_backlog    output that no emulator has seen yet
    run_socket        the socket beside the program's terminal
    escape_responder  answers the program's commands; imported with the first frame
    person_surface    the person's terminal as the surface of JSON escapes, and what it can do
    event_delivery    events of that terminal, for the subscribers
    file_transfer     files between a program and the person
    foreground_history   who is in the foreground, and who was a moment ago
    question_row      a question on the last row, over what the program shows
Other commands on a person's terminal:
    attach_view       `telex attach`: a session of a server
    run_recorder      `telex record`: a recording as a file
    player            `telex replay`: plays such a file
    panel_view        a program with a panel below it; adapter_panels has those of
                      `telex adapter try` and `telex adapter record`
"""
