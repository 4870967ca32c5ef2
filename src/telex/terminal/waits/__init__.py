"""Waiting for a state of a terminal, without polling.

matchers      the matchers of callers, as values
compiler      checks a matcher and compiles it to a condition
conditions    pure functions of a moment that return evidence
evidence      the moment that a condition checks, with the rows of its screen as printed lines;
              and the evidence it returns
since         which text is new since a mark, and which is only the echo of typed input
near_misses   text that almost matched, for a wait that failed
engine        the waits of one session: woken by output, by input, and by one timer each
"""
