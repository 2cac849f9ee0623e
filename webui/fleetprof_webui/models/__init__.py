"""The service's answers: the types of its JSON documents, from which OpenAPI and the frontend's types are made."""
