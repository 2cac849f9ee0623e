"""The judgement of tools that apply objects from Git: Argo CD and Flux, by the very snippets of the docs."""
