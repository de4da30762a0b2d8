"""All conditions by name."""

from hippo_core.methods.baselines import longctx, oracle, random_facts, window
from hippo_core.methods.rag.rankers import rag_bm25, rag_dense, rag_grams, rag_hybrid, rag_synonyms
from hippo_core.methods.rag.rerank import rag_rerank
from hippo_core.methods.types import Condition

CONDITIONS: dict[str, Condition] = {
    "window": Condition(window, uses_window=True, settings={}),
    "longctx": Condition(longctx, uses_window=False, settings={}),
    "oracle": Condition(oracle, uses_window=False, settings={}),
    "random_facts": Condition(random_facts, uses_window=False, settings={"k": None}),
    "rag_bm25": Condition(rag_bm25, uses_window=False, settings={"k": 3, "recency": None}),
    "rag_grams": Condition(rag_grams, uses_window=False, settings={"k": 3, "recency": None}),
    "rag_synonyms": Condition(rag_synonyms, uses_window=False, settings={"k": 3, "recency": None}),
    "rag_dense": Condition(rag_dense, uses_window=False, settings={"k": 3, "encoder": "own", "recency": None}),
    "rag_hybrid": Condition(rag_hybrid, uses_window=False, settings={"k": 3, "encoder": "own", "recency": None}),
    "rag_rerank": Condition(rag_rerank, uses_window=False, settings={"k": 3, "encoder": "own", "candidates": 20, "recency": None}),
}
