//! CLI help: every example works, lines fit a terminal, and operator routes and commands correspond.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use tempfile::TempDir;
use vouchsafe::program::Cli;

use crate::commands::{run, utf8};
use vouchsafe_test_harness::{Listener, program};

pub(crate) struct CommandDoc {
    command_line: String,
    help: String,
    has_json: bool,
    pub(crate) is_operator_command: bool,
    is_group: bool,
    pub(crate) examples: Vec<String>,
}

/// Returns every command, including command groups.
pub(crate) fn commands() -> Vec<CommandDoc> {
    let mut root = Cli::commands();
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
    let has = |name: &str| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_id() == name && !argument.is_hide_set())
    };
    let text = command.clone().render_long_help().to_string();
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_else(|| panic!("{words}: the help has no examples"));
    let examples = help
        .strip_prefix("Examples:\n")
        .unwrap_or_else(|| panic!("{words}: {help}"));
    // A wrapped example cannot be copied.
    let too_long = help.lines().find(|line| line.chars().count() > 100);
    assert_eq!(too_long, None, "{words}");
    CommandDoc {
        help: text,
        has_json: has("json"),
        is_operator_command: has("admin_url"),
        is_group,
        examples: examples
            .lines()
            .take_while(|line| !line.is_empty())
            .map(|line| with_ids(line.trim()))
            .collect(),
        command_line: words,
    }
}

/// Replaces the placeholders of the IDs that an option must parse.
fn with_ids(example: &str) -> String {
    [
        ("PARTNER_ID", "ptn"),
        ("CREDENTIAL_ID", "cred"),
        ("ORDER_ID", "ord"),
    ]
    .into_iter()
    .fold(example.to_owned(), |example, (placeholder, prefix)| {
        example.replace(placeholder, &format!("{prefix}_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f"))
    })
}

/// Creates the files that the examples name.
pub(crate) fn create_example_files() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("vouchers.csv", "code\nA-1\n"),
        ("vouchers.ndjson", "{\"code\":\"A-1\"}\n"),
        ("codes.csv", "A-1\nA-2,0002\n"),
        ("sold.csv", "code_id\n1\n"),
        (
            "records.csv",
            "reference,product_id,denomination,currency,sold_at\n",
        ),
        ("product.json", "{\"name\":\"Books\"}"),
        ("credential.txt", "a-credential\n"),
        ("code.txt", "a-code\n"),
    ] {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

/// Runs a command line in a shell, after this preamble.
pub(crate) fn run_in_shell(
    preamble: &str,
    line: &str,
    directory: &Path,
    environment: &[(&str, &str)],
) -> Output {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{preamble}\n{line}")])
        .current_dir(directory)
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    shell.output().unwrap()
}

#[test]
fn help_examples_parse_as_their_command() {
    let directory = create_example_files();
    for command in commands() {
        assert!(
            (1..=3).contains(&command.examples.len()),
            "{}",
            command.command_line
        );
        for example in &command.examples {
            assert!(
                example.contains(&command.command_line),
                "{}: {example}",
                command.command_line
            );
            let arguments = arguments_of(example, directory.path());
            let read = Cli::read(&arguments.iter().map(Into::into).collect::<Vec<_>>());
            assert!(read.is_ok(), "{example}: {}", read.unwrap_err());
        }
    }
}

#[test]
fn help_fits_a_terminal_with_connection_options_last() {
    for command in commands() {
        let line = &command.command_line;
        for text in command.help.lines() {
            assert!(text.chars().count() <= 100, "{line}: {text}");
        }
        let usage = command.help.split("Usage: ").nth(1).unwrap();
        let usage = usage.lines().next().unwrap();
        assert!(usage.starts_with(line) && !usage.contains('|'), "{line}: {usage}");
        let headings: Vec<_> = command
            .help
            .lines()
            .filter(|text| text.ends_with(':') && !text.starts_with(' '))
            .collect();
        let position = |heading: &str| headings.iter().position(|found| *found == heading);
        assert!(
            position("Options:") < position("Global options:"),
            "{line}: {headings:?}"
        );
        if command.is_operator_command {
            let own = command.help.split("\nConnection options:\n").next().unwrap();
            assert!(
                !own.contains("--admin-url") && !own.contains("--operator-token"),
                "{line}: {own}"
            );
            assert!(
                position("Connection options:") > position("Options:"),
                "{line}: {headings:?}"
            );
        }
    }
}

/// Returns the arguments that the program receives for a command line.
fn arguments_of(line: &str, directory: &Path) -> Vec<String> {
    let file = directory.join("arguments");
    let recorder = r#"vouchsafe() { printf '%s\n' vouchsafe "$@" > "$ARGUMENTS"; }"#;
    let output = run_in_shell(
        recorder,
        line,
        directory,
        &[("ARGUMENTS", file.to_str().unwrap())],
    );
    assert!(output.status.success(), "{line}: {}", utf8(&output.stderr));
    let arguments = std::fs::read_to_string(file).unwrap();
    arguments.lines().map(str::to_owned).collect()
}

/// Figures of charts, which a terminal does not draw.
const WITHOUT_COMMAND: [&str; 2] = ["/admin/v1/live", "/admin/v1/samples"];

/// A unit test asserts that the document has exactly the routes of the route table.
#[tokio::test]
async fn operator_routes_and_commands_correspond() {
    let routes = routes();
    let (url, requests) = start_recording_server(|_| EMPTY_PAGE.to_owned());
    let directory = create_example_files();
    let shell_function = format!("vouchsafe() {{ {} \"$@\"; }}", program().display());
    let environment = [
        ("VOUCHSAFE_ADMIN_URL", url.as_str()),
        ("VOUCHSAFE_OPERATOR_TOKEN", "any"),
    ];
    let mut covered = BTreeSet::new();
    for command in commands().iter().filter(|command| command.is_operator_command) {
        for example in &command.examples {
            let output = run_in_shell(&shell_function, example, directory.path(), &environment);
            let sent: Vec<_> = requests.try_iter().collect();
            assert!(
                !sent.is_empty(),
                "{example} sends no request: {}",
                utf8(&output.stderr)
            );
            for (method, path) in sent {
                let route = routes
                    .iter()
                    .find(|(known, template)| *known == method && is_path_match(template, &path));
                covered.insert(
                    route
                        .unwrap_or_else(|| panic!("{example}: {method} {path} is not a route"))
                        .clone(),
                );
            }
        }
    }
    let uncovered: Vec<_> = routes
        .difference(&covered)
        .filter(|(_, path)| !WITHOUT_COMMAND.contains(&path.as_str()))
        .collect();
    assert!(uncovered.is_empty(), "routes without a command: {uncovered:?}");
}

pub(crate) fn routes() -> BTreeSet<(String, String)> {
    let document = Listener::Operator.document();
    let paths = document.served()["paths"].as_object().unwrap().iter();
    let own = paths.filter(|(template, _)| template.starts_with("/admin/v1") || *template == "/activation");
    own.flat_map(|(template, item)| {
        let methods = item.as_object().unwrap().keys();
        methods.map(move |method| (method.to_uppercase(), template.clone()))
    })
    .collect()
}

pub(crate) fn is_path_match(template: &str, path: &str) -> bool {
    let (expected, actual) = (template.split('/'), path.split('/'));
    expected.clone().count() == actual.clone().count()
        && expected
            .zip(actual)
            .all(|(expected, actual)| expected.starts_with('{') || expected == actual)
}

const EMPTY_PAGE: &str = r#"{"data":[],"has_more":false,"next_cursor":null}"#;

/// Starts a server that reports method and path of each request, and responds with a body for the path.
pub(crate) fn start_recording_server(
    respond: impl Fn(&str) -> String + Send + 'static,
) -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let (method, path) = read_request_line(&connection);
            let body = respond(&path);
            if sender.send((method, path)).is_err() {
                return;
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close",
                body.len()
            );
            write!(connection, "{head}\r\n\r\n{body}").unwrap();
        }
    });
    (url, requests)
}

/// Reads a whole request and returns its method and path.
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
fn commands_with_response_have_json_option() {
    for command in commands().iter().filter(|command| !command.is_group) {
        let has_response = ![
            "vouchsafe serve",
            "vouchsafe vendor-simulator",
            "vouchsafe completions",
            "vouchsafe man-pages",
        ]
        .contains(&command.command_line.as_str());
        assert_eq!(command.has_json, has_response, "{}", command.command_line);
    }
}

#[test]
fn shell_completion_completes_subcommand() {
    let script = r#"eval "$(vouchsafe completions bash)"
        COMP_WORDS=(vouchsafe stock im) COMP_CWORD=2
        _vouchsafe vouchsafe im stock
        echo "${COMPREPLY[@]}""#;
    let shell_function = format!("vouchsafe() {{ {} \"$@\"; }}", program().display());
    let output = Command::new("bash")
        .args(["-c", &format!("{shell_function}\n{script}")])
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
