"""A grid in a notebook: `watch` shows how one comes along that was started anywhere, `start` starts one and shows it."""

from hippo_core.lab.widgets.view import GridView, start, watch
