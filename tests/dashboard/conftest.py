"""An invented run with a memory, rags, controls and ablations, and broken ones beside it."""

import pytest

from tests.results.fake_records import add_record, make_rows

MEMORY, SPARSE, RAG = "memory/hei_nw", "ablations/no_sparsity", "baselines/rag_bm25"


def rows_of(seed, skill, preset, regime="delayed", found=True):
    """Rows of a memory: those of a rag whose every so-maniest answer is wrong, with what was found."""
    rows = make_rows("episodic", RAG, regime, seed=seed)
    rows["score"] = [float(number % 10 < skill) for number in range(len(rows))]
    rows["pred"] = [answer if right else "<b>nobody</b>" for answer, right in zip(rows["answer"], rows["score"], strict=True)]
    rows["recalled_texts"] = f'[["{preset} said <i>so</i>", 0.5]]'
    return rows.assign(found=[float(number % 10 < 10 - (9 - skill) // 2) for number in range(len(rows))]) if found else rows


def add(run, preset, skill, seed=1337, **more):
    return add_record(run, "episodic", preset, "delayed", seed=seed, rows=rows_of(seed, skill, preset), **more)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The folder of the runs: `whole`, `alone` with one condition, `empty`, `damaged`."""
    folder = tmp_path_factory.mktemp("dashboard") / "executed"
    for seed in (1337, 2025):
        for preset, skill in ((MEMORY, 9), (SPARSE, 6), ("controls/empty_store", 0)):
            add(folder / "whole", preset, skill, seed)
        for k, skill in ((1, 8), (3, 7), (5, 5)):
            add(folder / "whole", MEMORY, skill, seed, overrides=(f"k={k}",))
        add_record(folder / "whole", "episodic", RAG, "delayed", seed=seed)
        add_record(folder / "whole", "episodic", "baselines/span_short", "delayed", seed=seed)
        add_record(folder / "whole", "episodic", "baselines/span_short", "immediate", seed=seed)
    add_record(folder / "whole", "semantic", RAG, "delayed")
    add_record(folder / "alone", "episodic", RAG, "delayed")
    (folder / "empty").mkdir()
    broken = add_record(folder / "damaged", "episodic", RAG, "delayed")
    (broken / "meta.json").write_text("{")
    rows = add_record(folder / "torn", "episodic", RAG, "delayed")
    add_record(folder / "torn", "episodic", "baselines/rag_dense", "delayed")
    (rows / "metrics.csv").write_text("idx,item_id\nx,y,z\n")
    return folder
