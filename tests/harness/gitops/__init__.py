"""How tools that apply objects from Git judge them: Argo CD and Flux, by the very snippets of the docs."""
