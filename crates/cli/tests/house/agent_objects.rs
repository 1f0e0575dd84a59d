//! Agents from the prompt.

use crate::House;

#[test]
fn agents_are_objects() {
    let house = House::with_agents();
    house.check(
        r#"Agents isRunning
           a := (Agents new: "echo" in: "/usr" options: #{#alias => "demo"}) unwrap. a class
           a state
           (a prompt: "good morning") unwrap
           a lastAnswer
           a alias
           (a alias: "") unwrap alias
           (a alias: "two words") error kind
           (a context: "be brief") unwrap context
           (a context: "") isOk
           a pid class
           a cwd
           a backend
           ((Agents at: a id) unwrap) =:= a
           (Agents at: "nobody") error kind
           (Agents new: "echo" in: "/no/such") error kind
           (Agents new: "nonsense" in: "/usr") error kind
           (Agents new: "echo" in: "/usr" options: #{#nonsense => "x"}) error kind
           (Agents backends) includes: "shell"
           (a prompt: "!sleep 60" timeout: 300) error kind
           (a send: "more") error kind
           (a interrupt) isOk
           (a mail: "QUERY_REQUEST" subject: "s" body: "b") unwrap class
           (a inbox collect: [:m | m subject])
           a inbox first complete isOk
           a inbox size
           a kill isOk
           [a state] on: Error do: [:e | e kind]
           Agents all
           Agents userInbox"#,
        r#"true
            Agent
            #idle
            "echo: good morning
            "
            "echo: good morning
            "
            "demo"
            nil
            #agent_failed
            "be brief"
            true
            Integer
            "/usr"
            "echo"
            true
            #agent_not_found
            #agent_failed
            #agent_failed
            #agent_failed
            true
            #agent_timeout
            #agent_busy
            true
            String
            #("s")
            true
            0
            true
            #agent_not_found
            #()
            #()"#,
    );
}

/// A program in a terminal may write anything; what the image gets is text, and what a person is shown does nothing to
/// their terminal.
#[test]
fn what_agents_write_is_only_text() {
    let house = House::with_agents();
    house.check(
        r#"a := (Agents new: "shell" in: "/usr") unwrap. a class
           (a prompt: "printf '\\033]0;title\\007\\033[31mred\\033[0m\\377\\001end\\n'") unwrap
           ((a prompt: "seq 1 200000") unwrap trim lines) last
           (a prompt: "kill -9 $$") error kind
           (Agents at: a id) isOk
           a kill isOk"#,
        r#"Agent
            "red�end
            "
            "200000"
            #agent_failed
            true
            true"#,
    );
}

#[test]
fn changes_are_announced() {
    let house = House::with_agents();
    house.check(
        r#"told := Ets new: #told type: #set. 1
           SystemAnnouncer current when: AgentCreated do: [:e | told at: #created put: e agentId]. 2
           SystemAnnouncer current when: AgentRemoved do: [:e | told at: #removed put: e agentId]. 3
           SystemAnnouncer current when: AgentCrashed do: [:e | told at: #crashed put: e agentId]. 4
           SystemAnnouncer current when: AgentStateChanged do: [:e | told at: e newState put: e oldState]. 5
           SystemAnnouncer current when: AgentTurnEnded do: [:e | told at: e turn put: e output]. 6
           SystemAnnouncer current when: AgentMailReceived do: [:e | told at: #mail put: e messageId]. 7
           await := [:key | [(told at: key ifAbsent: [nil]) isNil] whileTrue: [Timer sleep: 5]. told at: key]. 8
           a := (Agents new: "echo" in: "/usr") unwrap. (await value: #created) =:= a id
           (a prompt: "x") isOk
           await value: 1
           await value: #running
           m := (a mail: "QUERY_REQUEST" subject: "s" body: "b") unwrap. (await value: #mail) =:= m
           a send: "!exit 3". (await value: #crashed) =:= a id
           a kill. (await value: #removed) =:= a id"#,
        r#"1
            2
            3
            4
            5
            6
            7
            8
            true
            true
            "echo: x
            "
            #idle
            true
            true
            true"#,
    );
}

#[test]
fn neither_daemon_needs_the_other() {
    let house = House::new();
    house.check(
        r#"Agents isRunning
           (Agents at: "x") error kind
           [Agents all] on: Error do: [:e | e kind]"#,
        "false\n#agent_unavailable\n#agent_unavailable",
    );
    house
        .0
        .check("beamtalk agents start", "anvilsrv started successfully\n");
    house.check(
        r#"Agents isRunning
           a := (Agents new: "echo" in: "/usr" options: #{#alias => "kept"}) unwrap. a state"#,
        "true\n#idle",
    );
    // The daemon comes and goes; the link is made anew.
    house.0.run("beamtalk agents stop");
    house.check("Agents isRunning", "false");
    house
        .0
        .check("beamtalk agents start", "anvilsrv started successfully\n");
    house.check(
        r#"((Agents at: "kept") unwrap prompt: "still here") unwrap"#,
        "\"echo: still here\n\"",
    );
}
