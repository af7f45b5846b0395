// Records what Go makes of templates for the values of add-on charts: text/template with all functions of slim-sprig, and
// for whole files what Helm then takes as values.
//
// Reads files of questions and rewrites their answers in place. How such a file looks is told in ../tests/values/main.rs.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig"
)

const usage = `usage: recorder ROOTS FILE...

ROOTS is a JSON file with what templates see as their dot. The answers in each FILE are written anew. A file whose name
begins with "values" is one of whole texts, whose answers are values; one whose name begins with "names" has the names of
functions. Releases that questions name are looked up in the folder $STACKWRIGHT_CORPUS/releases.`

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	// The zone of the machine is none of a template's business.
	if os.Getenv("TZ") != "UTC" {
		fail(fmt.Errorf("set TZ=UTC: templates see the local zone"))
	}
	roots, err := os.ReadFile(os.Args[1])
	fail(err)
	for _, file := range os.Args[2:] {
		fail(record(file, roots))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		os.Exit(1)
	}
}

func record(file string, roots []byte) error {
	name := filepath.Base(file)
	if strings.HasPrefix(name, "names") {
		return os.WriteFile(file, []byte(strings.Join(names(), "\n")+"\n"), 0o644)
	}
	answer := output
	if strings.HasPrefix(name, "values") {
		answer = values
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var out, question []string
	end := func() error {
		if question == nil {
			return nil
		}
		answered, err := answered(question, roots, answer)
		out = append(out, answered)
		question = nil
		return err
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "> "):
			if err := end(); err != nil {
				return err
			}
			question = []string{line[2:]}
		case strings.HasPrefix(line, "| ") && question != nil:
			question = append(question, line[2:])
		case strings.HasPrefix(line, "= "), strings.HasPrefix(line, "! "):
			continue
		default:
			if err := end(); err != nil {
				return err
			}
		}
		out = append(out, line)
	}
	if err := end(); err != nil {
		return err
	}
	// The answer of a question stands behind its lines.
	return os.WriteFile(file, []byte(strings.Join(out, "\n")+"\n"), 0o644)
}

// answered gives the line of an answer.
func answered(question []string, roots []byte, answer func(string, any) (string, error)) (string, error) {
	text := strings.Join(question, "\n")
	if reference, isReference := strings.CutPrefix(text, "@"); isReference {
		found, err := ofRelease(reference)
		if err != nil {
			return "", err
		}
		text = found
	}
	// Templates can change what they see.
	root, err := decoded(roots)
	if err != nil {
		return "", err
	}
	mark := "= "
	given, err := answer(text, root)
	if err != nil {
		mark, given = "! ", err.Error()
	}
	line, err := encoded(given)
	return mark + line, err
}

// encoded is JSON without the escapes that are for browsers.
func encoded(text string) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(text)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// output is what a template writes.
func output(text string, root any) (string, error) {
	parsed, err := template.New("values").Funcs(sprig.TxtFuncMap()).Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := parsed.Execute(&out, root); err != nil {
		return "", err
	}
	return out.String(), nil
}

// names lists the functions of a template: those that the language has itself, found by asking for each, and those added.
func names() []string {
	all := []string{}
	for name := range sprig.TxtFuncMap() {
		all = append(all, name)
	}
	own := []string{
		"and", "break", "call", "continue", "define", "eq", "ge", "gt", "html", "include", "index", "js", "le", "len", "lookup",
		"lt", "ne", "not", "or", "print", "printf", "println", "required", "slice", "toYaml", "tpl", "urlquery",
	}
	for _, name := range own {
		_, isAdded := sprig.TxtFuncMap()[name]
		if _, err := template.New("names").Parse("{{ if false }}{{ print (" + name + ") }}{{ end }}"); err == nil && !isAdded {
			all = append(all, name)
		}
	}
	sort.Strings(all)
	return all
}
