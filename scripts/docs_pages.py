"""Puts the pages of the documentation site together: docs/, a few files of the root, and pages
made from the code. Called by scripts/docs:

    docs_pages.py FOLDER --binary racecars [--versions]

FOLDER gets `zensical.toml` and `pages/`. It needs nothing but the standard library; the Python
reference is read from the sources, so that no wheel has to be built.
"""

from __future__ import annotations

import argparse
import ast
import html
import inspect
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "racecars"
EXAMPLES = ROOT / "examples"

# Files of the root that are pages of the site.
OF_THE_ROOT = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "PLATFORM.md": "platforms.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
}
LINK = re.compile(r"(!?)\[([^\]\[]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")

# The Python reference: sections with the names that they explain, and their files.
REFERENCE = {
    "Minimizing": {
        "minimize": "_minimize.py",
        "maximize": "_minimize.py",
        "method": "_minimize.py",
    },
    "Ask and tell": {
        "Optimizer": "optimizer.py",
        "Best": "optimizer.py",
        "Candidate": "_core.pyi",
        "SpaceExhausted": "_core.pyi",
    },
    "Spaces": {
        "Real": "space.py",
        "Integer": "space.py",
        "Choice": "space.py",
        "Permutation": "space.py",
        "Subset": "space.py",
        "Simplex": "space.py",
        "when": "space.py",
        "Embedding": "embedding.py",
    },
    "Results and trials": {
        "OptimizeResult": "result.py",
        "Failure": "result.py",
        "Infeasible": "_objective.py",
        "Trials": "trials.py",
        "Trial": "trials.py",
        "read_study": "trials.py",
    },
    "Plots": {
        "plot.progress": "plot.py",
        "plot.importance": "plot.py",
        "plot.slices": "plot.py",
        "plot.parallel": "plot.py",
        "plot.region": "plot.py",
    },
    "Methods": {"settings": "_core.pyi"},
    "Optuna and Ray Tune": {
        "optuna.RaceCarsSampler": "optuna/_sampler.py",
        "ray.RaceCarsSearch": "ray/_search.py",
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--versions", action="store_true", help="link to the list of versions")
    arguments = parser.parse_args()

    pages = arguments.folder / "pages"
    shutil.rmtree(arguments.folder, ignore_errors=True)
    hidden = shutil.ignore_patterns("requirements.txt", "public-api.txt", "__pycache__")
    shutil.copytree(ROOT / "docs", pages, ignore=hidden)
    for name, page in OF_THE_ROOT.items():
        if not (pages / page).exists():
            (pages / page).write_text((ROOT / name).read_text())
            relink(pages / page, ROOT)
    for path in pages.glob("*.md"):
        if path.name not in OF_THE_ROOT.values() or path.name == "index.md":
            relink(path, ROOT / "docs")
    gallery(pages)
    reference = pages / "reference"
    reference.mkdir()
    (reference / "study-file.md").write_text(study_file(arguments.binary))
    (reference / "commands.md").write_text(commands(arguments.binary))
    (reference / "algorithms.md").write_text(algorithms(arguments.binary))
    (reference / "python.md").write_text(python_reference())

    config = (ROOT / "zensical.toml").read_text()
    version = cargo()["version"]
    config = config.replace('site_name = "racecars"', f'site_name = "racecars {version}"')
    if arguments.versions:
        changes = pages / "changelog.md"
        link = "\n\nDocumentation of <a href='../index.html'>other versions</a>.\n"
        changes.write_text(changes.read_text().replace("\n", link, 1))
    (arguments.folder / "zensical.toml").write_text(config)


def cargo() -> dict[str, str]:
    """`[workspace.package]`: the version, and the address of the repository once there is one."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    return dict(package)


def on_site(file: Path) -> Path | None:
    """Where a file of the repository is on the site, if it is there."""
    if file.is_relative_to(ROOT / "docs"):
        return file.relative_to(ROOT / "docs")
    name = str(file.relative_to(ROOT))
    if name in OF_THE_ROOT:
        return Path(OF_THE_ROOT[name])
    if file.is_relative_to(EXAMPLES) and file.is_file():
        place = Path("gallery") / file.relative_to(EXAMPLES)
        return place.with_name("index.md") if file.name == "README.md" else place
    return None


def relink(path: Path, folder: Path, at: str = ".") -> None:
    """Links of a page that was in `folder` and is in `at` of the site fit the site: to pages, else
    to the repository if it has an address, else they are plain text. A link to a file that is not
    there is an error."""
    address = cargo().get("repository")

    def changed(match: re.Match[str]) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        file = (folder / target).resolve()
        if "://" in target or target.startswith("mailto:") or not file.is_relative_to(ROOT):
            return match[0]
        place = on_site(file)
        # Whether a page is there is checked on the site: some are made from the code.
        if place is not None:
            return f"{image}[{text}]({os.path.relpath(place, at)}{anchor})"
        name = file.relative_to(ROOT)
        if not file.exists():
            raise SystemExit(f"{path.name}: there is no {name}, which [{text}]({target}) links to")
        return f"[{text}]({address}/blob/main/{name})" if address else text

    # Not in code.
    parts = re.split(r"(^```.*?^```|`[^`\n]+`\B(?!\]))", path.read_text(), flags=re.S | re.M)
    parts[::2] = [LINK.sub(changed, part) for part in parts[::2]]
    path.write_text("".join(parts))


def gallery(pages: Path) -> None:
    """The examples: their pages, with their programs at the end, and their files."""
    for source in sorted(EXAMPLES.glob("*/README.md")):
        name = source.parent.name
        folder = pages / "gallery" / name
        made = shutil.ignore_patterns("studies", "racecars-study", "sample", "limit", "__pycache__")
        shutil.copytree(source.parent, folder, ignore=made)
        page = (folder / "README.md").rename(folder / "index.md")
        relink(page, source.parent, f"gallery/{name}")
        tables = sorted(source.parent.glob("*.toml"))
        own = [source.parent / f"{name}.py", *tables, source.parent / "run"]
        parts = []
        for file in [*own, ROOT / "crates" / "racecars" / "examples" / f"{name}.rs"]:
            if file.exists():
                language = {".py": "python", ".toml": "toml", ".rs": "rust"}.get(file.suffix, "sh")
                listing = f"```{language}\n{file.read_text().rstrip()}\n```"
                indented = "\n".join(f"    {line}".rstrip() for line in listing.splitlines())
                parts.append(f'\n??? example "{file.name}"\n\n{indented}\n')
        page.write_text(page.read_text() + "".join(parts))


# Command line -------------------------------------------------------------------------------------


def output(binary: Path, *words: str) -> str:
    done = subprocess.run([binary, *words], capture_output=True, text=True, check=True)
    return done.stdout.rstrip()


def options(text: str) -> list[tuple[str, str, str]]:
    """The options of a `--help`: the name, what it takes, and the text."""
    found = []
    body = text.partition("\nOptions:\n")[2].partition("\nExamples:")[0]
    for block in re.split(r"\n(?= {2,6}-)", "\n" + body):
        head, _, about = block.strip().partition("\n")
        match = re.match(r"(?:-\w, )?--([\w-]+)(.*)", head)
        if match:
            found.append((match[1], match[2].strip(), " ".join(about.split())))
    return found


def code(text: str) -> str:
    """Code in a cell of a table."""
    return f"<code>{html.escape(text)}</code>".replace("|", "&#124;") if text else ""


def cell(text: str) -> str:
    """Text in a cell of a table; what is between backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return html.escape(text).replace("|", "&#124;")
    parts[1::2] = [code(part) for part in parts[1::2]]
    parts[::2] = [html.escape(part, quote=False).replace("|", "&#124;") for part in parts[::2]]
    return "".join(parts)


def study_file(binary: Path) -> str:
    folder = ROOT / "target" / "docs-init"
    folder.mkdir(parents=True, exist_ok=True)
    output(binary, "init", "--force", str(folder / "study.toml"))
    example = (folder / "study.toml").read_text()
    keys = re.findall(r"^#? ?([\w-]+) = ", example, flags=re.M)
    rows, others = [], []
    for flag, takes, about in options(output(binary, "run", "--help")):
        default = re.search(r" ?\[default: (.+)\]$", about)
        about = re.sub(r" ?\[(default|possible values): .+\]$", "", about)
        shown = code(f"--{flag}" + (f" {takes}" if takes and not takes.startswith("[=") else ""))
        name = next((name for name in (flag, flag + "s") if name in keys), None)
        if flag == "parameter":
            name = "[parameters]"
        elif flag == "set":
            name = "[set]"
        if name:
            ends = default[1] if default else ""
            ends = ends if " " in ends else code(ends)
            rows.append(f"| `{name}` | {shown} | {cell(about)} | {ends} |")
        elif flag not in ("help",):
            others.append(f"| {shown} | {cell(about)} |")
    table, flags = "\n".join(rows), "\n".join(others)
    return f"""# Study file

A study file has the program, its parameters and all settings. `racecars init` writes the file
below, `racecars check` validates it and runs one evaluation, and `racecars run` runs it. Flags of
`racecars run` have the same names and overrule the file. [Spaces](../spaces.md) has all kinds of
parameters. This page is made from the code.

## Settings

| key | flag | meaning | default |
|---|---|---|---|
{table}

## Only as flags

| flag | meaning |
|---|---|
{flags}

## The file that `racecars init` writes

```toml
{example.strip()}
```
"""


def commands(binary: Path) -> str:
    top = output(binary, "--help")
    names = re.findall(
        r"^  (\w+)  ", top.partition("Commands:\n")[2].partition("\nOptions:")[0], re.M
    )
    parts = [
        "# Commands\n\nEvery command has `--help`, and those that print results have `--json`. "
        "This page is made from the program.",
        f"## racecars\n\n```text\n{top}\n```",
    ]
    for name in names:
        if name == "help":
            continue
        text = output(binary, name, "--help")
        parts.append(f"## racecars {name}\n\n```text\n{text}\n```")
        more = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
        for sub in re.findall(r"^  (\w+)  ", more, re.M):
            if sub != "help":
                text = output(binary, name, sub, "--help")
                parts.append(f"### racecars {name} {sub}\n\n```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def algorithms(binary: Path) -> str:
    parts = [
        """# Algorithms

The names and settings are the same on the command line (`--algorithm cma-es --set population=40`),
in study files, in Python (`method="cma-es", population=40`) and in Rust
(`"cma-es(population=40)".parse()`). `racecars algorithms` prints this list; the page is made from
it. [How auto decides](../auto.md) says which of them the default runs when."""
    ]
    for one in json.loads(output(binary, "algorithms", "--json")):
        parts.append(f"## {one['name']}\n\n{cell(one['about'])}")
        if one["settings"]:
            rows = [f"| `{s['name']}` | {cell(s['about'])} |" for s in one["settings"]]
            parts.append("| setting | meaning |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


# Python -------------------------------------------------------------------------------------------


def python_reference() -> str:
    parts = [
        "# Python reference\n\nMade from the docstrings, whose examples are run by the tests. "
        "[The guide](../python.md) says what to use when."
    ]
    for section, names in REFERENCE.items():
        parts.append(f"## {section}")
        for name, file in names.items():
            parts += entry(f"racecars.{name}", find(name.rpartition(".")[2], file))
    return "\n\n".join(parts) + "\n"


Definition = ast.FunctionDef | ast.ClassDef


def find(name: str, file: str) -> Definition:
    for node in ast.parse((PACKAGE / file).read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node
    raise SystemExit(f"{file} has no {name}: mend REFERENCE in scripts/docs_pages.py")


def entry(name: str, node: Definition) -> list[str]:
    parts = [f"### {name}", f"```python\n{signature(name, node)}\n```", manual(node)]
    # What Optuna and Ray call is theirs to explain.
    if isinstance(node, ast.ClassDef) and name.count(".") == 1:
        for member, versions in members(node).items():
            lines = []
            for one in versions:
                marks = [ast.unparse(mark) for mark in one.decorator_list]
                if "property" in marks:
                    returns = f" -> {ast.unparse(one.returns)}" if one.returns else ""
                    lines.append(member + returns)
                else:
                    lines.append(signature(member, one))
            shown = "\n".join(lines)
            parts += [f"#### {member}", f"```python\n{shown}\n```", manual(versions[0])]
    return [part for part in parts if part]


def members(node: ast.ClassDef) -> dict[str, list[ast.FunctionDef]]:
    """Public methods and properties with their overloads: those that have a docstring, and those
    of a native base, whose docstrings are in Rust."""
    found: dict[str, list[ast.FunctionDef]] = {}

    def add(body: list[ast.stmt], is_native: bool) -> None:
        known = set(found)
        for one in body:
            if not isinstance(one, ast.FunctionDef) or one.name.startswith("_"):
                continue
            if one.name not in known and (is_native or ast.get_docstring(one)):
                found.setdefault(one.name, []).append(one)

    add(node.body, is_native=False)
    if any(ast.unparse(base) == f"_core.{node.name}" for base in node.bases):
        add(find(node.name, "_core.pyi").body, is_native=True)
    return found


def signature(name: str, node: Definition) -> str:
    if node.name == "maximize":
        return f"{name}(fun, bounds=None, *, ...)  # as minimize"
    if isinstance(node, ast.ClassDef):
        made = [
            one
            for one in node.body
            if isinstance(one, ast.FunctionDef) and one.name in ("__init__", "__new__")
        ]
        if not made:
            fields = [ast.unparse(one) for one in node.body if isinstance(one, ast.AnnAssign)]
            return wrapped(name, fields) if fields else name
        node = made[0]
    given, texts = node.args, []
    is_method = bool(given.args) and given.args[0].arg in ("self", "cls")
    positional = given.args[1:] if is_method else given.args
    blank = [None] * (len(positional) - len(given.defaults))
    defaults = [*blank, *given.defaults][-len(positional) :] if positional else []
    for one, default in zip(positional, defaults, strict=True):
        texts.append(argument(one, default))
    if given.vararg:
        texts.append("*" + argument(given.vararg, None))
    elif given.kwonlyargs:
        texts.append("*")
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    texts += [argument(one, default) for one, default in named]
    if given.kwarg:
        texts.append("**" + given.kwarg.arg)
    is_init = node.name in ("__init__", "__new__")
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and not is_init else ""
    return wrapped(name, texts, returns)


def wrapped(name: str, texts: list[str], returns: str = "") -> str:
    """A call, on several lines if it is long."""
    line = f"{name}({', '.join(texts)}){returns}"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + f"){returns}"


def argument(one: ast.arg, default: ast.expr | None) -> str:
    text = one.arg
    annotation = ast.unparse(one.annotation) if one.annotation else "Any"
    if annotation != "Any":
        text += f": {annotation}"
    if default is None:
        return text
    return (
        f"{text} = {ast.unparse(default)}"
        if annotation != "Any"
        else f"{text}={ast.unparse(default)}"
    )


def manual(node: Definition) -> str:
    """A docstring as Markdown."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    lines, result, i = text.splitlines(), [], 0
    in_parameters = False
    while i < len(lines):
        line = lines[i]
        if line.startswith((">>>", "...")):
            block = []
            while i < len(lines) and lines[i].strip():
                block.append(lines[i])
                i += 1
            result += ["", "```pycon", *block, "```", ""]
            continue
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1]):
            in_parameters = line == "Parameters"
            result += ["", f"*{line}*", ""]
            i += 2
            continue
        if in_parameters and line and not line.startswith(" "):
            i += 1
            about = []
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                about.append(lines[i].strip())
                i += 1
            if about:
                names = ", ".join(f"`{name}`" for name in line.split(", "))
                result += [f"{names}", f":   {prose(' '.join(about)).strip()}", ""]
            else:
                in_parameters = False
                result += [prose(line)]
            continue
        result.append(prose(line))
        i += 1
    return "\n".join(result).strip()


def prose(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


if __name__ == "__main__":
    main()
