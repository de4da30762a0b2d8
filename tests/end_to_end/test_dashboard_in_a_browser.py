"""The dashboard as a person sees it: notebook 10 in JupyterLab and in Voila, driven in a headless Chromium."""

import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from hippo_core.files import root
from tests.end_to_end import browser

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not browser.CHROMIUM, reason="no Chromium on this machine (Debian: apt-get install chromium)"),
]
PICTURES = Path(os.environ["HIPPO_PICTURES"]) if "HIPPO_PICTURES" in os.environ else None
NAME = "10_dashboard.ipynb"
SENTENCES = "Anna left the bicycle at the museum.\\nBen gave the lamp to Carl.\\nDora put the violin in the attic."
ANSWER = "(document.querySelector('.hippo-dashboard .hippo-ask .answer') || {innerText: ''}).innerText"
TYPE = """(selector, text) => {
  const box = document.querySelector(selector), kind = box.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(box, text);
  box.dispatchEvent(new Event('input', {bubbles: true})); box.dispatchEvent(new Event('change', {bubbles: true}));
}"""
CHOOSE = """(label, value) => {
  const row = [...document.querySelectorAll('.widget-dropdown')].find(one => one.innerText.startsWith(label));
  const box = row.querySelector('select'); box.value = [...box.options].find(one => one.text === value).value;
  box.dispatchEvent(new Event('change', {bubbles: true}));
}"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextmanager
def serving(words, says, folder):
    """A server that prints its address, ended with the block."""
    environment = {**os.environ, "JUPYTER_DATA_DIR": f"{folder}/data", "JUPYTER_CONFIG_DIR": f"{folder}/config", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment) as process:
        try:
            yield next(match[0] for line in process.stderr if (match := re.search(says, line)))
        finally:
            process.terminate()


def use(page, name):
    """Type three sentences and a question, flip three switches, and see the answer change each time."""
    page.wait(f"{ANSWER}.startsWith('station')", 60)
    page.run(f"({TYPE})('.hippo-dashboard textarea', '{SENTENCES}')")
    page.run("[...document.querySelectorAll('.hippo-dashboard button')].find(one => one.innerText.trim() === 'Ask').click()")
    page.wait(f"{ANSWER}.startsWith('museum')")
    page.run(f"({CHOOSE})('use completion', 'hopfield')")
    page.wait("document.querySelector('.hippo-dashboard .hippo-ask').innerText.includes('hopfield') || "
              "[...document.querySelectorAll('.hippo-dashboard .hippo-ask')].some(one => one.innerText.includes('hopfield'))")  # fmt: skip
    page.run(f"({CHOOSE})('delivery', 'text')")
    page.wait(f"{ANSWER}.includes('the same')")
    keep(page, f"{name}-ask")
    page.run(f"({CHOOSE})('control', 'empty')")
    page.wait(f"{ANSWER}.includes('before: museum')")
    keep(page, f"{name}-empty")
    for tab, text in (("Compare", "only A right"), ("Ablate", "")):
        page.click(f"[...document.querySelectorAll('.hippo-dashboard .lm-TabBar-tab')].find(one => one.innerText.trim() === '{tab}')")
        page.wait(f"document.querySelector('.hippo-dashboard').innerText.includes('{text}')")
        keep(page, f"{name}-{tab.lower()}")


def keep(page, name):
    if PICTURES:
        page.picture(PICTURES / f"{name}.png")


def test_voila_shows_the_dashboard(tmp_path):
    words = [
        sys.executable,
        "-m",
        "voila",
        str(root() / "notebooks" / NAME),
        "--no-browser",
        f"--port={free_port()}",
        "--Voila.ip=127.0.0.1",
        "--progressive_rendering=True",
    ]
    with serving(words, r"http://127\.0\.0\.1:\d+/", tmp_path) as address, browser.browsing(tmp_path) as page:
        page.open(address)
        use(page, "voila")


def test_jupyterlab_shows_the_dashboard_and_the_saved_notebook_shows_it_without_a_kernel(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shutil.copy(root() / "notebooks" / NAME, folder)
    words = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--port=0",
        "--ip=127.0.0.1",
        "--allow-root",
        f"--ServerApp.root_dir={folder}",
    ]
    words += ["--LabApp.expose_app_in_browser=True", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
    with serving(words, r"http://127\.0\.0\.1:\d+/lab", tmp_path) as address, browser.browsing(tmp_path) as page:
        page.open(f"{address}/tree/{NAME}?reset")
        page.wait("window.jupyterapp && document.querySelector('.jp-NotebookPanel')", 120)
        page.run("jupyterapp.shell.currentWidget.sessionContext.ready.then(() => true)")
        page.wait("jupyterapp.commands.isEnabled('notebook:run-all-cells')")
        page.run("jupyterapp.commands.execute('notebook:run-all-cells').then(() => true)")
        use(page, "jupyterlab")
        page.run("jupyterapp.commands.execute('docmanager:save').then(() => true)")
    saved = nbformat.read(folder / NAME, 4)
    for cell in saved.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    html, _ = HTMLExporter().from_notebook_node(saved)
    (tmp_path / "saved.html").write_text(html, encoding="utf-8")
    with browser.browsing(tmp_path / "again") as page:
        page.open(f"file://{tmp_path}/saved.html")
        page.wait("(document.querySelector('.hippo-saved .answer') || {innerText: ''}).innerText.includes('before: museum')")
        keep(page, "saved")
