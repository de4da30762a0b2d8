"""The store of traces: one SQLite file a session, `<folder>/hei_nw/<session_id>/traces.sqlite`.

What `append` and the others return is on the disk when they return. One writer at a time, readers beside it; a closed store is one file
and can be read where nothing can be written. A store says with which model and by which memory it was written, and opens for no other.
"""

from hippo_core.store.codec import Codec, NoPayload
from hippo_core.store.identity import Identity
from hippo_core.store.jsonl import export_store, import_store
from hippo_core.store.paths import store_path
from hippo_core.store.trace_store import TraceStore
