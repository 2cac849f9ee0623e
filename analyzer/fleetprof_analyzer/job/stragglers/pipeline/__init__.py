"""Jobs whose ranks are stages of pipelines: their shape, and what their schedule costs."""
