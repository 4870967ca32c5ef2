"""A todo list in the terminal: a small program to test.

    python examples/todo.py "buy milk" "call mum"

Up and down (or the mouse) choose an item, space marks it as done, `a` adds one, `d` deletes one
after a question, `q` quits. docs/how-to/test-a-tui.md tests it in three ways.
"""

from __future__ import annotations

import curses
import sys

HELP = "a add  space done  d delete  q quit"


class TodoList:
    """The items, the chosen one, and how they are drawn."""

    def __init__(self, window: curses.window, items: list[str]) -> None:
        self.window = window
        self.items = [[text, False] for text in items]
        self.chosen = 0
        curses.use_default_colors()
        curses.init_pair(1, curses.COLOR_GREEN, -1)
        curses.init_pair(2, curses.COLOR_WHITE, curses.COLOR_BLUE)
        curses.curs_set(0)
        curses.mousemask(curses.BUTTON1_PRESSED)

    def draw(self) -> None:
        self.window.erase()
        _, cols = self.window.getmaxyx()
        self.window.addnstr(
            0, 0, "Todo".ljust(cols - 1), cols - 1, curses.color_pair(2) | curses.A_BOLD
        )
        for number, (text, done) in enumerate(self.items):
            style = curses.A_REVERSE if number == self.chosen else curses.A_NORMAL
            style |= curses.color_pair(1) | curses.A_DIM if done else 0
            self.window.addnstr(2 + number, 1, f"[{'x' if done else ' '}] {text}", cols - 2, style)
        finished = sum(1 for _, done in self.items if done)
        self.window.addnstr(
            len(self.items) + 3, 1, f"{finished} of {len(self.items)} done", cols - 2
        )
        self.window.addnstr(len(self.items) + 4, 1, HELP, cols - 2, curses.A_DIM)
        self.window.refresh()

    def dialog(self, title: str, hint: str) -> curses.window:
        """Draw a box in the middle of the screen, over the list."""
        rows, cols = self.window.getmaxyx()
        width = min(cols - 2, 40)
        box = curses.newwin(5, width, max(0, rows // 2 - 2), (cols - width) // 2)
        box.box()
        box.addnstr(0, 2, f" {title} ", width - 4, curses.A_BOLD)
        box.addnstr(3, 2, hint, width - 4, curses.A_DIM)
        box.keypad(True)
        box.move(2, 2)
        box.refresh()
        return box

    def add(self) -> None:
        box = self.dialog("New item", "enter adds, escape does not")
        curses.curs_set(1)
        text = ""
        while (key := box.get_wch()) not in ("\n", "\x1b"):
            if key in (curses.KEY_BACKSPACE, "\x7f"):
                text = text[:-1]
            elif isinstance(key, str) and key.isprintable():
                text += key
            box.addnstr(2, 2, text.ljust(34), 34)
            box.move(2, 2 + min(len(text), 34))
        curses.curs_set(0)
        if key == "\n" and text:
            self.items.append([text, False])
            self.chosen = len(self.items) - 1

    def delete(self) -> None:
        box = self.dialog("Delete?", "y deletes, any other key does not")
        box.addnstr(1, 2, self.items[self.chosen][0], 34)
        if box.get_wch() == "y":
            del self.items[self.chosen]
            self.chosen = max(0, min(self.chosen, len(self.items) - 1))

    def run(self) -> None:
        while True:
            self.draw()
            match self.window.get_wch():
                case "q":
                    return
                case "a":
                    self.add()
                case "d" if self.items:
                    self.delete()
                case " " if self.items:
                    self.items[self.chosen][1] = not self.items[self.chosen][1]
                case curses.KEY_UP:
                    self.chosen = max(0, self.chosen - 1)
                case curses.KEY_DOWN:
                    self.chosen = max(0, min(len(self.items) - 1, self.chosen + 1))
                case curses.KEY_MOUSE:
                    _, _, row, *_ = curses.getmouse()
                    if 0 <= row - 2 < len(self.items):
                        self.chosen = row - 2


def main(window: curses.window) -> None:
    TodoList(window, sys.argv[1:]).run()


if __name__ == "__main__":
    curses.set_escdelay(25)
    curses.wrapper(main)
