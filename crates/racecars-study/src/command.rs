//! From a point to a program to run: arguments, variables, standard input, template files.

use crate::error::{Error, Result};
use crate::extract::Finder;
use crate::plan::Plan;
use crate::point::NamedPoint;
use crate::process::Invocation;
use crate::settings::value::serialized_as_text;
use crate::shell::{self, command_line};
use crate::text::{Context, Names, Slot, Text, Unknown, plain};
use racecars::{Domain, Space, Values};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A variable for the program, written `*` or `NAME=text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// All parameters, as `RACECARS_<name>`.
    All,
    /// One of this name.
    Named {
        /// Its name.
        name: String,
        /// Its value, in which parameters may be named.
        text: String,
    },
}

impl FromStr for Variable {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('=') {
            _ if text == "*" => Ok(Variable::All),
            Some((name, text)) if !name.is_empty() => {
                Ok(Variable::Named { name: name.to_string(), text: text.to_string() })
            }
            _ => Err(Error::setting(format!("`{text}` is neither * nor of the form NAME=text"))),
        }
    }
}

/// As it is read.
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variable::All => f.write_str("*"),
            Variable::Named { name, text } => write!(f, "{name}={text}"),
        }
    }
}

/// A file to fill in for each evaluation, written `source` or `source=target`. Without a target it is the
/// source's name, less an ending `.template`, `.tmpl` or `.in`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFile {
    /// The file with `{name}` in it.
    pub source: String,
    /// Its path in the evaluation's folder.
    pub target: PathBuf,
}

impl TemplateFile {
    fn target_of(source: &str) -> PathBuf {
        let name = Path::new(source).file_name().unwrap_or_default().to_string_lossy();
        let endings = [".template", ".tmpl", ".in"];
        let bare = endings.iter().find_map(|ending| name.strip_suffix(ending));
        PathBuf::from(bare.unwrap_or(&name))
    }
}

impl FromStr for TemplateFile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (source, target) = match text.split_once('=') {
            Some((source, target)) => (source, PathBuf::from(target)),
            None => (text, TemplateFile::target_of(text)),
        };
        let leaves =
            target.components().any(|part| !matches!(part, std::path::Component::Normal(_)));
        if target.as_os_str().is_empty() || leaves {
            return Err(Error::setting(format!(
                "`{text}`: the target `{}` is not a path within the evaluation's folder",
                target.display()
            )));
        }
        Ok(TemplateFile { source: source.to_string(), target })
    }
}

/// As it is read.
impl fmt::Display for TemplateFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if self.target != TemplateFile::target_of(&self.source) {
            write!(f, "={}", self.target.display())?;
        }
        Ok(())
    }
}

serialized_as_text!(Variable, TemplateFile);

/// How points become runs of the program.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    space: Space,
    fixed: NamedPoint,
    arguments: Vec<Text>,
    shell: bool,
    environment: Vec<(String, Text)>,
    stdin: bool,
    templates: Vec<Template>,
    /// Whether an evaluation has a folder of its own, and whether it runs in it.
    has_folder: bool,
    runs_in_folder: bool,
    base: PathBuf,
    study: PathBuf,
}

#[derive(Debug, Clone)]
struct Template {
    target: PathBuf,
    text: Text,
    permissions: std::fs::Permissions,
}

/// One evaluation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) trial: u64,
    pub(crate) seed: u64,
    /// The encoded point.
    pub(crate) point: &'a [f64],
    /// The name of its own folder, if it gets one.
    pub(crate) folder: &'a str,
    /// The worker that runs it.
    pub(crate) worker: usize,
}

impl Recipe {
    /// Reads the ways in which parameters reach the program; `study` is the study's folder.
    pub(crate) fn new(plan: &Plan, study: &Path, sources: &[&Finder]) -> Result<Recipe> {
        let names = plan.names();
        if plan.command.is_empty() {
            return Err(Error::setting(
                "no command; give one after --, or as `command` in the study file",
            ));
        }
        let parse = |text: &str, place: &str| Text::parse(text, names, Unknown::Refuse, place);
        let words = match plan.shell {
            true => vec![plan.command.join(" ")],
            false => split(&plan.command)?,
        };
        let arguments =
            words.iter().map(|word| parse(word, "the command")).collect::<Result<Vec<_>>>()?;
        let mut environment = Vec::new();
        if plan.env.contains(&Variable::All) {
            let values = (0..).map(|entry| Text::of(Slot::Parameter(entry)));
            environment.extend(variables(names)?.into_iter().zip(values));
        }
        for variable in &plan.env {
            if let Variable::Named { name, text } = variable {
                environment.push((name.clone(), parse(text, &format!("variable {name}"))?));
            }
        }
        let templates = (plan.templates.iter())
            .map(|template| Template::read(template, &plan.base, names))
            .collect::<Result<Vec<_>>>()?;
        let files = || sources.iter().filter_map(|source| source.file());
        let texts = || {
            let variables = environment.iter().map(|(_, text)| text);
            arguments.iter().chain(variables).chain(files())
        };
        let uses_dir = texts().any(|text| text.slots().any(|slot| *slot == Slot::Dir));
        // A result file with one name for all would be shared by evaluations side by side.
        let has_shared_file = files().any(|path| path.slots().next().is_none());
        let runs_in_folder = !templates.is_empty() || has_shared_file;
        let recipe = Recipe {
            shell: plan.shell,
            stdin: plan.stdin,
            has_folder: runs_in_folder || uses_dir,
            runs_in_folder,
            base: plan.base.clone(),
            study: study.to_path_buf(),
            space: plan.space.clone(),
            fixed: plan.fixed.clone(),
            arguments,
            environment,
            templates,
        };
        recipe.check_reached()?;
        if recipe.shell {
            shell::check(&recipe.arguments[0], |slot| recipe.is_plain(slot))?;
        }
        Ok(recipe)
    }

    fn names(&self) -> Names<'_> {
        Names { space: &self.space, fixed: &self.fixed }
    }

    /// Whether a shell takes all values of a placeholder as they are, with and without quotes.
    fn is_plain(&self, slot: &Slot) -> bool {
        let is_plain = |path: &Path| shell::is_plain(&path.display().to_string());
        match slot {
            Slot::Parameter(entry) | Slot::Element(entry, _) | Slot::Spread(entry) => {
                if let Some(values) = self.names().fixed(*entry) {
                    return shell::is_plain(&plain(values));
                }
                match self.space.entries()[*entry].domain() {
                    Domain::Levels(values) | Domain::Categorical(values) => {
                        values.iter().all(|value| shell::is_plain(&value.to_string()))
                    }
                    _ => true,
                }
            }
            Slot::Flag(_, text) => text.split_whitespace().all(shell::is_plain),
            Slot::Trial | Slot::Seed | Slot::Worker => true,
            Slot::Dir => is_plain(&self.study),
            Slot::Base => is_plain(&self.base),
        }
    }

    /// A parameter that does not reach the program is a mistake.
    fn check_reached(&self) -> Result<()> {
        if self.stdin {
            return Ok(());
        }
        let mut is_reached = vec![false; self.names().all().count()];
        let variables = self.environment.iter().map(|(_, text)| text);
        let templates = self.templates.iter().map(|template| &template.text);
        for slot in self.arguments.iter().chain(variables).chain(templates).flat_map(Text::slots) {
            if let Some(place) = slot.parameter() {
                is_reached[place] = true;
            }
        }
        match self.names().all().zip(is_reached).find(|(_, is_reached)| !is_reached) {
            None => Ok(()),
            Some((name, _)) => Err(Error::setting(format!(
                "parameter `{name}` does not reach the program: put {{{name}}} into the command or \
                     a template, or use --env or --stdin"
            ))),
        }
    }

    /// Whether an evaluation has a folder of its own.
    pub(crate) fn has_folder(&self) -> bool {
        self.has_folder
    }

    /// The folder of evaluations' own folders.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.study.join("trials").join(name)
    }

    /// The run of one evaluation. Its own folder, where it has one, is made afresh.
    pub(crate) fn prepare(&self, task: Task<'_>) -> io::Result<Invocation> {
        let folder = self.folder(task.folder);
        let context = self.context(task, &folder);
        if self.has_folder {
            remove(&folder)?;
            std::fs::create_dir_all(&folder)?;
            self.render(&folder, &context)?;
        }
        let mut environment = self.variables(&context);
        let mut name = |name: &str, value: String| {
            environment.push((format!("RACECARS_{name}"), value));
        };
        name("STUDY", self.study.display().to_string());
        name("TRIAL", task.trial.to_string());
        name("SEED", task.seed.to_string());
        // Studies from before it was there may have a parameter of this name.
        if !self.environment.iter().any(|(other, _)| other == "RACECARS_WORKER") {
            name("WORKER", task.worker.to_string());
        }
        if self.has_folder {
            name("DIR", context.dir.clone());
        }
        Ok(Invocation {
            arguments: self.words(&context),
            environment,
            input: self.stdin.then(|| self.json(task.point)),
            folder: Some(if self.runs_in_folder { folder } else { self.base.clone() }),
        })
    }

    /// A file's path for this evaluation.
    pub(crate) fn path(&self, task: Task<'_>, path: &Text) -> PathBuf {
        let folder = self.folder(task.folder);
        let base = if self.runs_in_folder { &folder } else { &self.base };
        base.join(path.fill(&self.context(task, &folder), |value| value))
    }

    /// Makes the study's folder `best` for the evaluation that is to be pasted, if it needs one.
    pub(crate) fn make_best(&self, task: Task<'_>) -> io::Result<()> {
        if !self.has_folder {
            return Ok(());
        }
        let folder = self.best_folder();
        std::fs::create_dir_all(&folder)?;
        self.render(&folder, &self.context(task, &folder))
    }

    fn best_folder(&self) -> PathBuf {
        self.study.join("best")
    }

    /// The evaluation as a line for a shell, to be run in [the folder `best`](Recipe::make_best).
    pub(crate) fn paste(&self, task: Task<'_>) -> String {
        let folder = self.best_folder();
        let context = self.context(task, &folder);
        let mut line = String::new();
        let is_here = std::env::current_dir().is_ok_and(|here| here == self.base);
        if self.runs_in_folder || !is_here {
            let folder = if self.runs_in_folder { &folder } else { &self.base };
            line += &format!("cd {} && ", shell::quoted(folder.display().to_string()));
        }
        if self.stdin {
            let json = self.json(task.point);
            line += &format!("echo {} | ", shell::quoted(json.trim_end().to_string()));
        }
        for (name, value) in self.variables(&context) {
            line += &format!("{name}={} ", shell::quoted(value));
        }
        match &self.words(&context)[..] {
            // A shell's line is one already, unless variables or a pipe stand before it.
            [_, _, script] if self.shell && line.is_empty() => line += script,
            words => line += &command_line(words),
        }
        line
    }

    /// What stands for the placeholders of an evaluation whose own folder is `folder`.
    fn context(&self, task: Task<'_>, folder: &Path) -> Context {
        let Task { trial, seed, point, worker, .. } = task;
        let searched = self.space.view(point).assignments().map(|(_, values)| values);
        let fixed = self.fixed.values().iter().map(|(_, values)| values.clone());
        let values = searched.chain(fixed).collect();
        let (dir, base) = (folder.display().to_string(), self.base.display().to_string());
        Context { values, trial, seed, dir, base, worker }
    }

    fn json(&self, point: &[f64]) -> String {
        // A point is names, finite numbers and texts, which always serialize.
        let point = NamedPoint::decode(&self.space, point).completed(&self.fixed);
        serde_json::to_string(&point).unwrap_or_default() + "\n"
    }

    fn words(&self, context: &Context) -> Vec<String> {
        if self.shell {
            let script = self.arguments[0].fill(context, shell::quoted_value);
            return vec!["sh".to_string(), "-c".to_string(), script];
        }
        let mut words = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            if argument.is_left_out(context) {
                continue;
            }
            match argument.spread().map(|entry| &context.values[entry]) {
                Some(Values::Many(values)) => words.extend(values.iter().map(ToString::to_string)),
                _ => words.push(argument.fill(context, |value| value)),
            }
        }
        // A program's path is relative to the base, also where it runs elsewhere.
        if self.runs_in_folder
            && let Some(program) = words.first_mut()
            && program.contains('/')
        {
            *program = self.base.join(&*program).display().to_string();
        }
        words
    }

    /// The variables that carry parameters.
    fn variables(&self, context: &Context) -> Vec<(String, String)> {
        (self.environment.iter())
            .map(|(name, text)| (name.clone(), text.fill(context, |value| value)))
            .collect()
    }

    fn render(&self, folder: &Path, context: &Context) -> io::Result<()> {
        for template in &self.templates {
            let target = folder.join(&template.target);
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&target, template.text.fill(context, |value| value))?;
            std::fs::set_permissions(&target, template.permissions.clone())?;
        }
        Ok(())
    }
}

impl Template {
    fn read(file: &TemplateFile, base: &Path, names: Names<'_>) -> Result<Template> {
        let TemplateFile { source, target } = file;
        let path = base.join(source);
        let refuse = |error| Error::system("read the template", &path, error);
        let content = std::fs::read_to_string(&path).map_err(refuse)?;
        let permissions = std::fs::metadata(&path).map_err(refuse)?.permissions();
        let text = Text::parse(&content, names, Unknown::Keep, source)?;
        if text.slots().next().is_none() {
            let example = names.all().next().unwrap_or("x");
            return Err(Error::setting(format!(
                "template `{source}` has no parameter in it; write {{{example}}} where its value goes"
            )));
        }
        Ok(Template { target: target.clone(), text, permissions })
    }
}

/// Removes a folder that may not be there.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The words of a command. One given as a single text is split at blanks, which is only right where
/// there is nothing that a shell would have to look at.
fn split(command: &[String]) -> Result<Vec<String>> {
    match command {
        [text] if text.contains(char::is_whitespace) => {
            if text.contains(['\'', '"', '|', '<', '>', '&', ';', '$', '`', '\\', '*', '(']) {
                return Err(Error::setting(format!(
                    "the command `{text}` is one text with shell characters in it; give it as a list \
                     of words, or use --shell"
                )));
            }
            Ok(text.split_whitespace().map(str::to_string).collect())
        }
        words => Ok(words.to_vec()),
    }
}

/// The names of the parameters' variables.
fn variables(names: Names<'_>) -> Result<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let variable = |name: &str| format!("RACECARS_{}", name.replace(|c| !is_plain(c), "_"));
    let names: Vec<String> = names.all().map(variable).collect();
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.extend(["RACECARS_STUDY", "RACECARS_TRIAL", "RACECARS_SEED", "RACECARS_DIR"]);
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::setting(format!(
            "two things would be in the variable {}; rename a parameter, or use --env NAME={{name}}",
            pair[0]
        ))),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn recipe(more: &str, base: &Path) -> Result<Recipe> {
        let text = format!("{more}\n[parameters]\nx = '0:10'\n'w[2]' = '0:1'\nm = 'a b,c'");
        recipe_of(&text, base)
    }

    fn recipe_of(text: &str, base: &Path) -> Result<Recipe> {
        let plan = Plan::new(&Settings::parse(text)?, base, None)?;
        let finder = Finder::new(&plan.objective, plan.names())?;
        Recipe::new(&plan, Path::new("/study"), &[&finder])
    }

    const TASK: Task<'static> =
        Task { trial: 3, seed: 9, point: &[2.5, 0.0, 1.0, 0.0], folder: "3", worker: 5 };

    fn prepare(more: &str) -> Invocation {
        recipe(more, Path::new("/base")).unwrap().prepare(TASK).unwrap()
    }

    fn error(more: &str) -> String {
        recipe(more, Path::new("/base")).unwrap_err().to_string()
    }

    #[test]
    fn arguments_hold_values_and_arrays_spread() {
        let run =
            prepare("command = ['a', '-x{x}', '{w}', '{w...}', '{w[1]}', '{m}', '{trial}:{seed}']");
        assert_eq!(run.arguments, ["a", "-x2.5", "0,1", "0", "1", "1", "a b", "3:9"]);
        assert_eq!(run.folder, Some(PathBuf::from("/base")));
        assert_eq!((run.input, run.environment.len()), (None, 4));
        assert_eq!(run.environment[3], ("RACECARS_WORKER".to_string(), "5".to_string()));
        assert_eq!(prepare("command = 'a {x} {w} {m}'").arguments, ["a", "2.5", "0,1", "a b"]);
    }

    #[test]
    fn a_shell_gets_quoted_values() {
        let run = prepare("shell = true\ncommand = 'echo {x} {w} {m} | tail'");
        assert_eq!(run.arguments, ["sh", "-c", "echo 2.5 0,1 'a b' | tail"]);
        let error = error("shell = true\ncommand = 'echo {x} {w} \"{m}\"'");
        assert!(error.contains("stands inside quotes"), "{error}");
    }

    #[test]
    fn flags_appear_or_not_and_fixed_values_are_passed() {
        let run = |more: &str, point: &[f64]| {
            let text = format!("{more}\n[parameters]\nfast = 'bool'\nn = 7\nm = 'it'\nset = true");
            let recipe = recipe_of(&text, Path::new("/base")).unwrap();
            recipe.prepare(Task { point, ..TASK }).unwrap()
        };
        let command = "command = ['a', '{fast?--fast}', '{n}', '-o{fast?x}', '{set?--set}', '{m}']";
        assert_eq!(run(command, &[1.0]).arguments, ["a", "--fast", "7", "-ox", "--set", "it"]);
        assert_eq!(run(command, &[0.0]).arguments, ["a", "7", "-o", "--set", "it"]);
        let shell = "shell = true\ncommand = 'a {fast?--fast --hard} {n} \"{m}\" {set?b}'";
        assert_eq!(run(shell, &[1.0]).arguments[2], "a --fast --hard 7 \"it\" b");
        assert_eq!(run(shell, &[0.0]).arguments[2], "a  7 \"it\" b");
        let all = run("command = 'a'\nenv = ['*']\nstdin = true", &[0.0]);
        assert!(all.environment.contains(&("RACECARS_n".to_string(), "7".to_string())));
        assert_eq!(all.input.unwrap(), "{\"fast\":false,\"n\":7,\"m\":\"it\",\"set\":true}\n");
        let error = |more: &str| {
            let text = format!("{more}\n[parameters]\nx = '0:1'\nfast = 'bool'\nn = 7");
            recipe_of(&text, Path::new("/base")).unwrap_err().to_string()
        };
        assert!(error("command = 'a {x} {fast}'").contains("parameter `n` does not reach"));
        let quoted = "shell = true\ncommand = \"a {x} {n} {fast?-m 'a b'}\"";
        assert!(error(quoted).contains("shell"), "{}", error(quoted));
    }

    #[test]
    fn variables_and_json() {
        let run = prepare("command = 'a'\nenv = ['*', 'RATE=r{x}']\nstdin = true");
        let names: Vec<String> =
            run.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(names[..4], ["RACECARS_x=2.5", "RACECARS_w=0,1", "RACECARS_m=a b", "RATE=r2.5"]);
        assert_eq!(run.input.unwrap(), "{\"x\":2.5,\"w\":[0.0,1.0],\"m\":\"a b\"}\n");
    }

    #[test]
    fn the_line_to_paste_says_it_all() {
        let paste = |more: &str| recipe(more, Path::new("/base")).unwrap().paste(TASK);
        assert_eq!(paste("command = 'a {x} {w} {m}'"), "cd /base && a 2.5 0,1 'a b'");
        assert_eq!(
            paste("command = 'a'\nenv = ['*']\nstdin = true"),
            "cd /base && echo '{\"x\":2.5,\"w\":[0.0,1.0],\"m\":\"a b\"}' | RACECARS_x=2.5 \
             RACECARS_w=0,1 RACECARS_m='a b' a"
        );
    }

    #[test]
    fn variables_and_templates_are_written_as_they_are_read() {
        for text in ["*", "RATE={x}", "A=b=c", "A="] {
            assert_eq!(text.parse::<Variable>().unwrap().to_string(), text);
        }
        for text in ["in.cfg", "dir/in.cfg.template", "a=b", "dir/a=dir/a", "a=b=c"] {
            assert_eq!(text.parse::<TemplateFile>().unwrap().to_string(), text);
        }
        assert_eq!("in/a.tmpl=a".parse::<TemplateFile>().unwrap().to_string(), "in/a.tmpl");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(error("").starts_with("no command"));
        assert!(error("command = 'a {x} {w}'").contains("parameter `m` does not reach"));
        assert!(error("command = 'a {y}'").contains("`{y}` in the command is no parameter"));
        assert!(error("command = 'a | b'").contains("shell characters"));
        assert!(error("command = 'a'\nenv = ['x']").contains("neither * nor"));
        assert!(
            error("command = 'a'\ntemplates = ['none.in']").contains("cannot read the template")
        );
        assert!(error("command = 'a'\ntemplates = ['a=../b']").contains("not a path within"));
    }
}
