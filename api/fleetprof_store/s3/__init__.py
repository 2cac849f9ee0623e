"""The object store in S3: `store` has the calls, `errors` what went wrong in words. boto3 is imported here alone."""
