"""Packets of the warden: what is said arrives, and nothing that no warden says."""

import msgspec
import pytest

from kerneltruth.runner.warden_packet import WardenPacket, lost


def test_a_packet_has_only_the_fields_that_it_is_about():
    assert msgspec.json.encode(WardenPacket(signal=9)) == b'{"signal":9}'


def test_a_reason_with_a_path_of_any_bytes_arrives():
    sent = msgspec.json.encode(lost("no folder /tmp/\udcff"))
    assert msgspec.json.decode(sent, type=WardenPacket).lost == "no folder /tmp/\\udcff"


@pytest.mark.parametrize("said", [b'{"child":1}', b'{"child":0}', b'{"gone":true}', b'{"over":1}'])
def test_a_process_that_is_no_child_and_words_for_numbers_are_refused(said):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(said, type=WardenPacket)
