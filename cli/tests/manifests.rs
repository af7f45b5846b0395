//! The manifests as people print them.

#[cfg(test)]
mod printing {
    use std::{
        fs,
        path::Path,
        process::{Command, Output},
    };

    const CRDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds");

    fn print(arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-stacks"));
        let command = command.arg("manifests").args(arguments);
        command.output().expect("the command starts")
    }

    fn printed(arguments: &[&str]) -> String {
        let output = print(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it prints text")
    }

    /// The manifests in a folder of the repository, in any order.
    fn committed(folder: &str) -> Vec<String> {
        let files = fs::read_dir(Path::new(CRDS).join(folder)).unwrap();
        let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        let mut texts: Vec<_> = texts.map(|text| text.split_once('\n').unwrap().1.to_owned()).collect();
        texts.sort();
        texts
    }

    fn documents(text: &str) -> Vec<String> {
        let mut documents: Vec<_> = text.split("---\n").skip(1).map(str::to_owned).collect();
        documents.sort();
        documents
    }

    #[test]
    fn what_is_printed_is_what_the_repository_has_as_files() {
        assert_eq!(documents(&printed(&["crds", "roles"])), committed("yaml"));
        assert_eq!(documents(&printed(&["webhooks"])), committed("webhooks"));
        assert_eq!(documents(&printed(&["hooks"])), committed("hooks"));
        assert_eq!(documents(&printed(&["certificates"])), committed("cert-manager"));
    }

    #[test]
    fn what_is_printed_without_a_word_is_in_nobodys_way_before_an_operator_runs() {
        let usual = printed(&[]);
        assert_eq!(usual, printed(&["crds", "roles"]));
        for kind in ["ValidatingWebhookConfiguration", "ExtensionConfig", "Certificate"] {
            assert!(!usual.contains(&format!("kind: {kind}\n")), "{kind}");
        }
    }

    #[test]
    fn f40_the_namespace_is_the_one_that_is_asked_for_and_no_other() {
        let parts = ["crds", "roles", "webhooks", "hooks", "certificates"];
        let usual = printed(&parts);
        let ours = printed(&[&parts[..], &["--namespace=fleet-1"]].concat());
        assert!(usual.contains("cso-system") && !ours.contains("cso-system"), "{ours}");
        assert_eq!(usual.replace("cso-system", "fleet-1"), ours);
        let asked_about = printed(&["hooks", "--cluster-namespaces=team-a,team-b"]);
        assert!(
            asked_about.contains("values:\n      - team-a\n      - team-b\n"),
            "{asked_about}"
        );
        for bad in ["Fleet", "", "-a", "a/b"] {
            let output = print(&["--namespace", bad]);
            assert_eq!(output.status.code(), Some(2), "{bad:?}");
            assert!(output.stdout.is_empty(), "{bad:?}");
        }
    }
}
