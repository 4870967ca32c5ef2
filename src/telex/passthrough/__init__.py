"""Runs programs in the person's own terminal: `telex run`, and the other commands that use one.

`program_run.run` starts a program on a terminal of its own and joins that terminal with the
person's: input, output, size, signals and stops. `telex record` does the same with a witness.

Each direction has one verb for bytes that arrive and one for bytes that leave. No message passes
the same object twice:

    program_output    ProgramRun → EscapeFilter → EscapeResponder → OutputMerger → QuestionRow
                      → JoinedTerminals.write_to_terminal
    person_input      ProgramRun → EscapeFilter → EscapeResponder → EventDelivery
                      → JoinedTerminals.write_to_program

`EscapeResponder` and the objects after it exist only after the first frame. `Demux`, `PageFilter`,
`TerminalQueries`, `AttributeFilter` and `QuestionRow` (for input) take bytes or events and return
the rest. The ANSI of a command enters the output at `OutputMerger.insert`.

    program_run       the whole run, from the first key to the exit code
    joined_terminals  the two terminals: where both directions end, with their backpressure
    person_terminal   the person's terminal: makes it raw, restores it on every way out, and
                      tracks the modes that a program has set on it; stops telex when the program
                      stops, and continues both
    terminal_io       non-blocking reading and writing of descriptors that we share with the shell
    session_leader    the small program that leads the child's session
Filters between the two terminals, for JSON escapes and pages:
    escape_filter     finds frames in the output and replies in the input; loads the rest; opens
                      the socket beside the program's terminal
                      (`PageFilter` is the same for pages)
    page_opener       asks the person and opens the browser
    query_replies     replies of the person's terminal: to our queries, and to the program's DA1
    output_backlog    output that no emulator has parsed yet
    escape_responder  answers the program's commands; imported with the first frame
    person_surface    the person's terminal as the surface of JSON escapes, and its abilities
    event_delivery    sends events of that terminal to their subscribers
    file_transfer     files between a program and the person
    foreground_history   the foreground process group, now and a moment ago
    question_row      a question on the last row, over the program's output
Other commands on a person's terminal:
    attach_view       `telex attach`: a session of a server
    run_recorder      `telex record`: a recording as a file
    player            `telex replay`: plays such a file
    panel_view        a program with a panel below it; adapter_panels has the panels of
                      `telex adapter try` and `telex adapter record`
"""
