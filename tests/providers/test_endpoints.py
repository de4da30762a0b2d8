"""Models behind URLs: a server on this machine that answers, and misbehaves."""

import json
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hippo_core.errors import LabError
from hippo_core.providers import load_provider
from hippo_core.providers.retry import RetryPolicy, retry_after

QUICK = RetryPolicy(attempts=3, first_pause=0.001, timeout=5, longest_pause=2)
CHAT = {"choices": [{"message": {"content": "Ghent"}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}}  # fmt: skip
OLLAMA = {"message": {"content": "Ghent"}, "prompt_eval_count": 12, "eval_count": 3}
GOOD = (200, {}, json.dumps(CHAT).encode())


@pytest.fixture
def server():
    """A server that gives the replies of its list one after another, the last for ever: status, headers, body or a function."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append((self.path, dict(self.headers), json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            status, headers, body = replies.pop(0) if len(replies) > 1 else replies[0]
            if callable(body):
                return body(self)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    replies, asked = [], []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    running.replies, running.asked, running.url = replies, asked, f"http://127.0.0.1:{running.server_port}/v1"
    yield running
    running.shutdown()
    running.server_close()


def asked(server, *replies, name="openai:tiny", policy=QUICK, **more):
    server.replies[:] = replies
    return load_provider(f"{name}@{server.url}", policy, **more).answer("Where?", max_tokens=5, temperature=0.0)


def as_reply(values):
    return 200, {}, json.dumps(values).encode()


@pytest.mark.parametrize(
    ("name", "reply", "tokens"),
    [
        ("openai:tiny", CHAT, (12, 3, 8)),
        ("openai:tiny", {"choices": CHAT["choices"], "usage": {"prompt_tokens": "12"}}, (None, None, None)),
        ("ollama:qwen3:0.6b", OLLAMA, (12, 3, None)),
    ],
)
def test_an_answer_has_its_tokens(server, name, reply, tokens):
    answer = asked(server, as_reply(reply), name=name)
    assert (answer.text, answer.tokens_in, answer.tokens_out, answer.cached_tokens) == ("Ghent", *tokens)


def test_each_kind_is_asked_in_its_own_form(server):
    asked(server, GOOD)
    asked(server, as_reply(OLLAMA), name="ollama:qwen3:0.6b")
    (path, headers, body), (own_path, _, own_body) = server.asked
    messages = [{"role": "user", "content": "Where?"}]
    assert path == "/v1/chat/completions" and "Authorization" not in headers
    assert body == {"model": "tiny", "messages": messages, "max_tokens": 5, "temperature": 0.0}
    options = {"temperature": 0.0, "num_predict": 5}
    assert own_path == "/v1/api/chat"
    assert own_body == {"model": "qwen3:0.6b", "messages": messages, "stream": False, "options": options}


@pytest.mark.parametrize(
    ("reply", "said", "attempts"),
    [
        ((200, {}, b"<!doctype html><title>Sign in</title>"), "got HTML: <!doctype html><title>Sign in", 1),
        ((502, {}, b"<html>bad gateway</html>"), "status 502: HTML <html>bad gateway", 3),
        ((401, {}, b'{"error": {"message": "no key"}}'), 'status 401: {"error": {"message": "no key"}}', 1),
        ((302, {"Location": "http://127.0.0.1:9/"}, b""), "status 302: an empty reply", 1),
        ((200, {}, GOOD[2][:-20]), "no whole JSON", 3),
        ((200, {"Content-Length": "999"}, GOOD[2]), "peer closed connection", 3),
        ((200, {}, b""), "nothing on its output", 3),
        ((200, {}, b'{"choices": []}'), "without choices", 1),
        ((200, {}, b'{"choices": [{"message": {"content": "\xff"}}]}'), "no UTF-8", 1),
        ((200, {}, json.dumps({"error": {"message": "Rate limit reached"}}).encode()), "Rate limit reached", 3),
        ((200, {}, b"x" * (8 * 2**20 + 1)), "more than 8,388,608 bytes", 1),
        ((429, {"Retry-After": "3600"}, b""), "status 429", 1),  # nobody waits for an hour
    ],
)
def test_a_failure_names_the_url_and_what_came(server, reply, said, attempts):
    answer = asked(server, reply)
    assert f"{server.url}/chat/completions: " in (answer.error or "") and said in (answer.error or "")
    assert (answer.text, answer.attempts) == ("", attempts)


@pytest.mark.parametrize("status", [429, 529, 503])
def test_a_busy_server_is_asked_again_when_it_says(server, status):
    answer = asked(server, (status, {"Retry-After": "0.4"}, b"later"), GOOD)
    assert (answer.text, answer.attempts, answer.error) == ("Ghent", 2, None)
    assert answer.seconds >= 0.4


def slowly(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(40):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


@pytest.mark.parametrize("body", [slowly, lambda handler: time.sleep(2)])
def test_the_time_limit_is_one_of_the_whole_answer(server, body):
    answer = asked(server, (200, {}, body), policy=RetryPolicy(attempts=1, timeout=0.4))
    assert "answer within 0.4 s" in (answer.error or "") and answer.seconds < 1.5


def test_a_server_that_is_not_there():
    answer = load_provider("openai:tiny@http://127.0.0.1:9/v1", QUICK).answer("Where?")
    assert "http://127.0.0.1:9/v1/chat/completions" in (answer.error or "") and answer.attempts == 3


def test_a_key_is_sent_where_it_belongs_and_said_nowhere(server, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sesame")
    answer = asked(server, (401, {}, b"no"), key_env="MY_KEY")
    assert server.asked[0][1]["Authorization"] == "Bearer sesame" and "sesame" not in (answer.error or "")
    with pytest.raises(LabError, match="unencrypted"):
        load_provider("openai:tiny@http://example.org/v1", key_env="MY_KEY")


@pytest.mark.parametrize("key", ["", "two words", "line\n", "\u2019"])
def test_a_key_that_no_header_carries_is_refused_and_said_nowhere(monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(LabError, match="MY_KEY holds no key") as error:
        load_provider("openai:tiny@https://example.org/v1", key_env="MY_KEY")
    assert not key or key not in str(error.value)


def test_half_of_a_character_is_an_error_of_the_answer(server):
    answer = asked(server, as_reply({"choices": [{"message": {"content": "a\ud800"}}]}))
    assert not answer.text and "half of a character" in (answer.error or "")


@pytest.mark.parametrize("url", ["http://[", "http://host:99999", "ftp://a/b", "http://", "http://me:pw@host/v1", "http://host/v1?key=x"])
def test_a_url_is_checked(url):
    with pytest.raises(LabError, match="an endpoint is"):
        load_provider(f"openai:tiny@{url}")


def test_how_long_to_wait_is_a_number_or_a_date():
    now = datetime(2030, 1, 1, 12, tzinfo=UTC)
    assert retry_after("7") == 7
    assert retry_after("Tue, 01 Jan 2030 12:00:30 GMT", now) == 30
    assert retry_after("Tue, 01 Jan 2030 11:00:00 GMT", now) == 0
    assert [retry_after(value) for value in (None, "soon", "nan", "-3")] == [None, None, None, 0]


@pytest.mark.parametrize(("ended", "cut"), [("length", True), ("stop", False), (None, False)])
@pytest.mark.parametrize("name", ["openai:tiny", "ollama:tiny"])
def test_an_answer_says_whether_the_limit_has_cut_it(server, name, ended, cut):
    ends = {"openai:tiny": {"choices": [CHAT["choices"][0] | {"finish_reason": ended}]}, "ollama:tiny": OLLAMA | {"done_reason": ended}}
    assert asked(server, as_reply(ends[name]), name=name).cut is cut
