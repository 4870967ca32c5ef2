"""`telex run`: a person's terminal around a child. As if telex were not there.

`run.run` puts a program on a terminal of its own and joins that one with the person's: keys in,
bytes out, size, signals, stops. `telex record` is the same with a witness.

    run           the whole of it, from the first key to the exit code
    own_terminal  the person's terminal: raw, and back again on every way out
    mode_tracker  what a program has set on it, and the bytes that undo that
    modes         what a terminal's line discipline is told to do, as values
    apart         a descriptor that we may set non-blocking without the shell noticing
    inlet         bytes from the person, as they come
    outlet        bytes to the person, as fast as they are taken
    outcome       how it ends
    end_of_input  the end of a file that is typed
    job_control   stopping with the program, and going on with it
    leader        the small program that leads the child's session
JSON escapes in it:
    escaping      between the program's output and the person's terminal
    attributes    "what are you?", answered with ours added
    backlog       what was printed and no emulator has seen
    answering     who answers; loaded with the first frame
    person_surface, asking   the person's terminal, and what it is asked
    listeners     what happens there, for those who subscribed
    whereabouts   who is in the foreground
    shown, question, boundary   a question on the last row, over what the program shows
Recordings, and the rest:
    record        what was seen, as a file
    replay        such a file, played again
    beside        a program with a panel below it, for `telex adapter`
    painting      the rows that changed, and the modes, as bytes
    trying        the panel that shows what a plugin says
    keeping       the panel that keeps screens as fixtures
"""
