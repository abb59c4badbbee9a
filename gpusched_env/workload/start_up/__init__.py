"""Start-up of a task, predicted from the layers of its model and the costs of a machine."""
