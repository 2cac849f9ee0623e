"""The distance of a job from the published peak of its devices."""
