"""The metrics agent's package.

It holds no code yet. Its place is fixed here so that packaging and the import contract (nothing of kubectl_ghost but
`kubectl_ghost.domain`) are checked from the first day.
"""
