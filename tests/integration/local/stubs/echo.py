"""A stub function: does what the event's `do` says."""

import ctypes
import json
import os
import time


class CodedFault(Exception):
    """Raised on demand: its class name must reach the caller."""


count = 0


def handler(event, context):
    global count
    count += 1
    match event.get("do"):
        case "raise":
            raise CodedFault("told to")
        case "exit":
            os._exit(3)
        case "crash":
            ctypes.string_at(0)
        case "sleep":
            time.sleep(event["seconds"])
        case "large":
            return "x" * event["size"]
        case "answer":
            return event["answer"]
    if "requestContext" in event:
        time.sleep(float(event["headers"].get("X-Sleep", 0)))
        return _proxy(event)
    return {
        "count": count,
        "pid": os.getpid(),
        "event": event,
        "environment": dict(os.environ),
        "remaining_ms": context.get_remaining_time_in_millis(),
        "request_id": context.aws_request_id,
        "arn": context.invoked_function_arn,
    }


def _proxy(event):
    return {
        "statusCode": 200,
        "isBase64Encoded": False,
        "multiValueHeaders": {"Content-Type": ["application/json"], "X-Twice": ["a", "b"]},
        "body": json.dumps(event),
    }
