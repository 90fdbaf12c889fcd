"""The explorer: a local web page with five rooms to look, click and understand.

A room is a module `<name>_room.py` with a function `room(store)` that returns a `Room`, a template `<name>.html`
which extends `frame.html`, and a script `static/<name>.js`; its place in `app.ROOMS` is the registration. A question is
a function from the JSON object that the page sent to plain data; it is called in a thread, is tested without a server,
checks its fields with `asking`, raises Refusal with a message for people, and calls `question_queue.check()` between
its long steps. Words that need explaining go into `glossary.py` and into templates by `{{ help("degree") }}`. Scripts
import their helpers from `./room.js`.
"""

from genscope.explorer.app import make_app as make_app
from genscope.explorer.room import Download as Download
from genscope.explorer.room import Room as Room
from genscope.explorer.server import serve as serve
