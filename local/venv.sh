#!/usr/bin/env bash
# venv.sh FOLDER REQUIREMENTS: a virtual environment with exactly the hash-pinned packages.
set -euo pipefail
folder=$1 requirements=$2

find_python() {
  local candidate
  for candidate in python3.13 "$HOME"/.pyenv/versions/3.13*/bin/python3.13 python3.11 python3.12 python3; do
    # A pyenv shim exists for versions that it then refuses to run.
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "error: Python 3.13 or 3.11 is needed" >&2
  return 1
}

if [ ! -x "$folder/bin/python" ]; then
  python=$(find_python)
  "$python" -m venv "$folder" || {
    echo "error: '$python -m venv' failed; on Debian install python3-venv" >&2
    exit 1
  }
fi
version=$("$folder/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$version" = 3.13 ] || echo "note: Python 3.13 was not found (it is what Lambda runs); using $version"
echo "installing $requirements into $folder"
if [ ! -x "$folder/bin/uv" ]; then
  # The one pinned line of uv, so that even the installer is checked by its hash.
  awk '/^uv==/ {on = 1} on {print} on && !/\\$/ {exit}' "$requirements" >"$folder/uv.txt"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$folder/uv.txt"
fi
"$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --require-hashes -r "$requirements"
touch "$folder/.ready"
