"""`make soak`: an agent under the scrapes of a thousand nodes and as many new pods as the control plane binds."""
