//! Does every command's help have examples that work, and is every operator's route a command?

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use clap::CommandFactory as _;
use tempfile::TempDir;
use vouchsafe::settings::Cli;

use crate::commands::{run, utf8};
use crate::support::{Listener, PROGRAM};

/// A command as it is typed, and its examples.
struct CommandDoc {
    command_line: String,
    has_json: bool,
    is_operator_command: bool,
    is_group: bool,
    examples: Vec<String>,
}

/// Every command, those that only hold others too.
fn commands() -> Vec<CommandDoc> {
    let mut root = Cli::command();
    root.build();
    let mut found = Vec::new();
    let mut open = vec![(root, "vouchsafe".to_owned())];
    while let Some((command, words)) = open.pop() {
        let own = command.get_subcommands().filter(|own| own.get_name() != "help");
        let own: Vec<_> = own
            .map(|own| (own.clone(), format!("{words} {}", own.get_name())))
            .collect();
        found.push(read_command_doc(&command, words, !own.is_empty()));
        open.extend(own);
    }
    assert!(found.len() > 25, "{}", found.len());
    found
}

fn read_command_doc(command: &clap::Command, words: String, is_group: bool) -> CommandDoc {
    let has = |name: &str| command.get_arguments().any(|argument| argument.get_id() == name);
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_else(|| panic!("{words}: its help has no example"));
    let examples = help
        .strip_prefix("Examples:\n")
        .unwrap_or_else(|| panic!("{words}: {help}"));
    CommandDoc {
        has_json: has("json"),
        is_operator_command: has("admin_url"),
        is_group,
        examples: examples
            .lines()
            .take_while(|line| !line.is_empty())
            .map(|line| line.trim().to_owned())
            .collect(),
        command_line: words,
    }
}

/// A directory with the files that examples name.
fn create_example_files() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("vouchers.csv", "code\nA-1\n"),
        ("vouchers.ndjson", "{\"code\":\"A-1\"}\n"),
        ("codes.csv", "A-1\nA-2,0002\n"),
        (
            "records.csv",
            "reference,product_id,denomination,currency,sold_at\n",
        ),
        ("product.json", "{\"name\":\"Books\"}"),
        ("credential.txt", "a-credential\n"),
    ] {
        std::fs::write(place.path().join(name), content).unwrap();
    }
    place
}

/// Runs a line as it is typed, with this before it.
fn run_in_shell(before: &str, line: &str, place: &Path, environment: &[(&str, &str)]) -> Output {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{before}\n{line}")])
        .current_dir(place)
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    shell.output().unwrap()
}

#[test]
fn every_example_is_read_as_the_command_it_stands_at() {
    let place = create_example_files();
    for command in commands() {
        assert!((1..=2).contains(&command.examples.len()), "{}", command.command_line);
        for example in &command.examples {
            assert!(example.contains(&command.command_line), "{}: {example}", command.command_line);
            let words = arguments_of(example, place.path());
            let read = Cli::read(&words.iter().map(Into::into).collect::<Vec<_>>());
            assert!(read.is_ok(), "{example}: {}", read.unwrap_err());
        }
    }
}

/// What the program is given when a line is typed.
fn arguments_of(line: &str, place: &Path) -> Vec<String> {
    let given = place.join("given");
    let noting = r#"vouchsafe() { printf '%s\n' vouchsafe "$@" > "$GIVEN"; }"#;
    let output = run_in_shell(noting, line, place, &[("GIVEN", given.to_str().unwrap())]);
    assert!(output.status.success(), "{line}: {}", utf8(&output.stderr));
    let words = std::fs::read_to_string(given).unwrap();
    words.lines().map(str::to_owned).collect()
}

/// The document has every route and no other, which a test beside the routes holds against their table. So a route
/// without a command, and a command without a route, fail here.
#[tokio::test]
async fn every_operators_route_has_a_command_and_every_command_a_route() {
    let routes = routes();
    let (url, asked) = start_recording_server();
    let place = create_example_files();
    let calling = format!("vouchsafe() {{ {PROGRAM} \"$@\"; }}");
    let environment = [
        ("VOUCHSAFE_ADMIN_URL", url.as_str()),
        ("VOUCHSAFE_OPERATOR_TOKEN", "any"),
    ];
    let mut met = BTreeSet::new();
    for command in commands().iter().filter(|command| command.is_operator_command) {
        for example in &command.examples {
            let output = run_in_shell(&calling, example, place.path(), &environment);
            let (method, path) = asked
                .try_recv()
                .unwrap_or_else(|_| panic!("{example} asks for nothing: {}", utf8(&output.stderr)));
            let route = routes
                .iter()
                .find(|(known, template)| *known == method && is_path_match(template, &path));
            met.insert(
                route
                    .unwrap_or_else(|| panic!("{example}: {method} {path} is no route"))
                    .clone(),
            );
        }
    }
    let unmet: Vec<_> = routes.difference(&met).collect();
    assert!(unmet.is_empty(), "no command asks for {unmet:?}");
}

/// The method and the template of every operator's route.
fn routes() -> BTreeSet<(String, String)> {
    let document = Listener::Operator.document();
    let paths = document.served()["paths"].as_object().unwrap().iter();
    let own = paths.filter(|(template, _)| template.starts_with("/admin/v1"));
    own.flat_map(|(template, item)| {
        let methods = item.as_object().unwrap().keys();
        methods.map(move |method| (method.to_uppercase(), template.clone()))
    })
    .collect()
}

fn is_path_match(template: &str, path: &str) -> bool {
    let (expected, given) = (template.split('/'), path.split('/'));
    expected.clone().count() == given.clone().count()
        && expected
            .zip(given)
            .all(|(expected, given)| expected.starts_with('{') || expected == given)
}

/// Somebody who answers every request with an empty list, and tells what was asked for before the answer leaves.
fn start_recording_server() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            if sender.send(read_request_line(&connection)).is_err() {
                return;
            }
            let body = r#"{"data":[],"has_more":false,"next_cursor":null}"#;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close",
                body.len()
            );
            write!(connection, "{head}\r\n\r\n{body}").unwrap();
        }
    });
    (url, asked)
}

/// Method and path of a request, which is read to its end.
fn read_request_line(connection: &TcpStream) -> (String, String) {
    let mut lines = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(lines.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let headers = head.to_lowercase();
    let length = headers.split("content-length: ").nth(1);
    let length = length.map(|rest| rest.lines().next().unwrap().parse::<usize>().unwrap());
    let mut body = vec![0; length.unwrap_or_default()];
    lines.read_exact(&mut body).unwrap();
    let mut chunks = String::new();
    while headers.contains("transfer-encoding: chunked") && !chunks.ends_with("0\r\n\r\n") {
        assert!(lines.read_line(&mut chunks).unwrap() > 0, "{chunks}");
    }
    let mut words = head.split([' ', '?']);
    (words.next().unwrap().to_owned(), words.next().unwrap().to_owned())
}

#[test]
fn every_command_that_has_an_answer_shows_it_as_it_came() {
    for command in commands().iter().filter(|command| !command.is_group) {
        let has_answer = ![
            "vouchsafe serve",
            "vouchsafe vendor-simulator",
            "vouchsafe completions",
        ]
        .contains(&command.command_line.as_str());
        assert_eq!(command.has_json, has_answer, "{}", command.command_line);
    }
}

#[test]
fn a_shell_completes_what_begins_so() {
    let script = r#"eval "$(vouchsafe completions bash)"
        COMP_WORDS=(vouchsafe stock im) COMP_CWORD=2
        _vouchsafe vouchsafe im stock
        echo "${COMPREPLY[@]}""#;
    let calling = format!("vouchsafe() {{ {PROGRAM} \"$@\"; }}");
    let output = Command::new("bash")
        .args(["-c", &format!("{calling}\n{script}")])
        .output()
        .unwrap();
    assert_eq!(utf8(&output.stdout), "import\n", "{}", utf8(&output.stderr));
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = utf8(&run(&["completions", shell]).stdout);
        assert!(
            script.contains("vouchsafe") && script.contains("top-up"),
            "{shell}"
        );
    }
}
