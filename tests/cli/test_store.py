"""`genscope store check` and `store copy`, as a user meets them."""

import json
import sqlite3
import time

from genscope.lab import Record, Store, Trial
from tests.cli.program import TOYS
from tests.lab.damage import PAGE

OTHER = Trial("toy", 9, {"kind": "good"}, 0)


def test_a_sound_store(call, call_json):
    call("run", f"{TOYS}:study")
    assert "sqlite:////" in (told := call("store", "check").stdout)
    assert ": sound; version 4; rows: 1 of study, 8 of trial, 1 of selection, 1 of provenance, 0 of verdict" in told
    facts = call_json("store", "check", "sqlite:///genscope.db")
    assert (facts["sound"], facts["problems"], facts["rows"]["trial"]) == (True, [], 8)


def test_a_copy_counts_all_trials_and_those_that_it_replaced(call, call_json):
    call("run", f"{TOYS}:study")
    with sqlite3.connect("genscope.db") as connection:
        connection.execute("DELETE FROM study")
    connection.close()
    copy = ["store", "copy", "sqlite:///genscope.db", "sqlite:///copy.db"]
    assert ": 8 of the 8 trials of sqlite" in call(*copy).stdout
    with Store("sqlite:///genscope.db") as store:
        store.add([Record(OTHER, {}, "no")])
    facts = call_json(*copy)
    assert (facts["trials"], facts["new_trials"], facts["replaced_trials"]) == (9, 1, 0)
    with Store("sqlite:///genscope.db") as store:
        store.add([Record(OTHER, {"x": 1.0})], retried=time.time())
    assert ": 0 of the 9 trials of sqlite" in (told := call(*copy).stdout)
    assert "were new, and 1 replaced failed ones" in told


def test_what_lost_its_provenance_is_copied_and_exported_with_a_warning(call, call_json):
    call("run", f"{TOYS}:study")
    with sqlite3.connect("genscope.db") as connection:
        connection.execute("DELETE FROM provenance")
    connection.close()
    assert "name a provenance that is not there" in call("store", "check", status=1).stdout
    assert "warning: the provenance of 8 of these trials is lost" in call("export", "toy").stderr
    copied = call("store", "copy", "sqlite:///genscope.db", "sqlite:///copy.db")
    assert "warning: the provenance of 8 of these trials is lost" in copied.stderr
    assert call_json("store", "copy", "sqlite:///genscope.db", "sqlite:///copy.db")["trials_without_provenance"] == 8
    assert ": sound; " in call("store", "check", "sqlite:///copy.db").stdout


def test_a_damaged_store_is_refused_checked_and_copied(call, call_json, refused, directory):
    call("run", f"{TOYS}:study")
    with sqlite3.connect("genscope.db") as connection:
        connection.execute("UPDATE trial SET result = '{}' WHERE seed = 1 AND point LIKE '%good%'")
    connection.close()
    for command in (["report"], ["run", f"{TOYS}:study"], ["export", "toy"]):
        message = refused(*command)
        assert "2 of 8 rows of the table trial" in message or "genscope store copy" in message
    told = call("store", "check", status=1).stdout
    assert told.count("not as it was written") == 2
    assert "genscope store copy sqlite:" in told
    result = call("store", "copy", "sqlite:///genscope.db", "sqlite:///sound.db", status=1)
    assert "6 sound trials copied" in result.stdout
    assert "2 unsound rows left behind" in result.stdout
    with Store("sqlite:///sound.db", read_only=True) as store:
        assert store.frame("toy").height == 6
    assert call_json("run", f"{TOYS}:study", "--store", "sqlite:///sound.db")["new_trials"] == 2


def test_a_time_that_is_none_is_damage_and_no_traceback(call, refused):
    call("run", f"{TOYS}:study")
    with sqlite3.connect("genscope.db") as connection:
        connection.execute("UPDATE trial SET seconds = x'3FE0000000000000' WHERE seed = 1 AND point LIKE '%good%'")
    connection.close()
    for command in (["report"], ["run", f"{TOYS}:study"], ["export", "toy"]):
        assert "2 of 8 rows of the table trial are not as they were written" in refused(*command)
    assert call("store", "check", status=1).stdout.count("not as it was written") == 2
    told = call("store", "copy", "sqlite:///genscope.db", "sqlite:///sound.db", status=1).stdout
    assert "6 sound trials copied" in told
    assert "2 unsound rows left behind" in told
    assert ": sound; " in call("store", "check", "sqlite:///sound.db").stdout


def test_a_store_that_lost_a_page_is_no_traceback(call, refused, directory):
    call("run", f"{TOYS}:study")
    file = directory / "genscope.db"
    content = bytearray(file.read_bytes())
    content[2 * PAGE : 3 * PAGE] = bytes(PAGE)
    file.write_bytes(content)
    for command in (["list"], ["report"], ["export", "toy"], ["run", f"{TOYS}:study"], ["reproduce", "--only", "C9"]):
        assert "genscope store check" in refused(*command)
    assert "damaged" in call("store", "check", status=1).stdout
    facts = json.loads(call("store", "copy", "sqlite:///genscope.db", "sqlite:///b.db", "--json", status=1).stdout)
    assert facts["copied"].keys() == facts["left"].keys()


def test_a_store_that_is_not_there_cannot_be_checked(refused):
    assert "Run a study with this store first" in refused("store", "check", "sqlite:///none.db")


def test_what_is_left_of_a_store_that_was_cut_is_copied_and_told(call, call_json, refused, directory):
    call("run", f"{TOYS}:study")
    file = directory / "genscope.db"
    file.write_bytes(file.read_bytes()[: 2 * PAGE])
    assert "genscope store copy" in refused("run", f"{TOYS}:study")
    assert ": damaged; " in call("store", "check", status=1).stdout
    told = call("store", "copy", "sqlite:///genscope.db", "sqlite:///sound.db", status=1).stdout
    assert ": 0 sound trials copied from " in told
    assert "what could not be read is lost" in told
    assert call_json("run", f"{TOYS}:study", "--store", "sqlite:///sound.db")["new_trials"] == 8


def test_a_store_without_a_table_is_told_before_anything_is_computed(call, refused):
    call("run", f"{TOYS}:study")
    with sqlite3.connect("genscope.db") as connection:
        connection.execute("DROP TABLE verdict")
        connection.execute("DROP INDEX trial_point")
    connection.close()
    message = refused("run", f"{TOYS}:study", "--seeds", "9")
    assert "there is no table verdict; schema: there is no index trial_point" in message
    assert "toy: 0 of" not in message
    told = call("store", "copy", "sqlite:///genscope.db", "sqlite:///sound.db", status=1).stdout
    assert ": 8 sound trials copied from " in told
    assert ": sound; " in call("store", "check", "sqlite:///sound.db").stdout


def test_what_is_no_store_of_ours_is_not_called_damaged(refused, directory):
    with sqlite3.connect("music.db") as connection:
        connection.execute("CREATE TABLE album (title)")
    connection.close()
    (directory / "empty.db").touch()
    assert "tables of another program" in (said := refused("store", "check", "sqlite:///music.db"))
    assert "is empty" in (also := refused("store", "check", "sqlite:///empty.db"))
    assert "damaged" not in said + also
