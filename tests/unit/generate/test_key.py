"""A key comes from the environment, and is shown nowhere."""

import pickle
import subprocess
import sys

import pytest

from kerneltruth.errors import UserError
from kerneltruth.generate.key import Key, checked_url, is_loopback, key_from, travels_openly


def test_a_key_prints_as_nothing_and_cannot_be_pickled():
    key = Key("sk-0123456789")
    assert "0123" not in f"{key} {key!r} {[key]}"
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_a_key_takes_itself_out_of_texts():
    assert Key("sk-0123456789").hide("it is sk-0123456789!") == "it is [key]!"


def test_a_placeholder_does_not_spoil_texts():
    assert Key("x").hide("max(x, 0)") == "max(x, 0)"


@pytest.mark.parametrize("value", ["", "   ", "\n"])
def test_no_key_is_said(value):
    with pytest.raises(UserError, match="the environment variable MY_KEY is empty"):
        key_from({"MY_KEY": value}, "MY_KEY")


def test_a_key_that_no_header_holds_is_refused_without_showing_it():
    with pytest.raises(UserError) as caught:
        key_from({"MY_KEY": "sk-012\nX: y"}, "MY_KEY")
    assert str(caught.value) == "MY_KEY holds characters that no key has; export the key alone"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("api.example.com/v1", "must be http"),
        ("ftp://example.com", "must be http"),
        ("http://", "must be http"),
        ("http://[::1", "Invalid IPv6 URL; give it as https://HOST/v1"),
        ("http://host:port/v1", "Port could not be cast"),
        ("https://me:secret@example.com/v1", "no credentials"),
        ("https://example.com/v1?key=secret", "must have no query and no fragment; drop them"),
        ("https://example.com/v1#secret", "must have no query and no fragment; drop them"),
    ],
)
def test_an_address_that_is_none_is_refused_without_showing_secrets(url, said):
    with pytest.raises(UserError, match=said) as caught:
        checked_url(url)
    assert "secret" not in str(caught.value)


def test_an_address_is_kept_without_its_last_slash():
    assert checked_url("https://example.com/v1/") == "https://example.com/v1"


def test_what_travels_openly_is_known():
    assert is_loopback("http://127.0.0.1:8000/v1")
    assert is_loopback("http://[::1]:8000/v1")
    assert not travels_openly("http://localhost:8000/v1")
    assert not travels_openly("https://example.com/v1")
    assert travels_openly("http://10.0.0.7:8000/v1")


def test_a_shielded_process_is_one_that_others_cannot_look_into():
    code = (
        "import ctypes\n"
        "from kerneltruth.generate.key import shield_process\n"
        "shield_process()\n"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "0"
