"""A worker that speaks the protocol, loads nothing and so starts at once: `python pretended_worker.py DIRECTORY`.

It notes in files of the directory how often it was asked for each kind of trial.
"""

import json
import os
import select
import signal
import sys
import time
from pathlib import Path


def act(kind):
    """The answer to a trial of some kind, unless it ends us."""
    marks = Path(sys.argv[1], kind)
    with marks.open("a") as file:
        file.write("x")
    if kind == "exits" or (kind == "exits twice" and marks.stat().st_size <= 2):
        os._exit(7)
    if kind == "edited" or (kind == "edited twice" and marks.stat().st_size <= 2):
        return {"changed": ["helper.py"]}
    if kind == "exits slowly":
        os.close(1)
        ended_from_outside, _, _ = select.select([sys.stdin], [], [], 0.3)
        os._exit(0 if ended_from_outside else 7)
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "hangs":
        time.sleep(600)
    return {"values": '{"number":1}', "error": None, "seconds": 0.1, "compile_seconds": 0.0}


def main():
    sys.stdin.readline()
    for line in sys.stdin:
        order = json.loads(line)
        if order["name"] == "absent":
            os._exit(3)
        print(json.dumps({"ready": {"python": "3"}}), flush=True)
        results = (act(point["kind"]) for point, _ in order["trials"])
        for result in list(results) if order["stacked"] else results:
            print(json.dumps(result), flush=True)
            if "changed" in result:
                break


if __name__ == "__main__":
    main()
