// Evaluates conditions of stages with cel-go as the Go operator does: each object a variable of type map(string, dyn), the
// standard library, nothing else.
//
// Reads lines of JSON: first the objects by their keys, then one expression in each line. Writes for each expression one line of
// JSON: "true", "false", "not bool: TYPE", "error: ..." of the evaluation, or "compile: ..." of what came before it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	if !lines.Scan() {
		return fmt.Errorf("no line with the objects: %v", lines.Err())
	}
	objects, err := read(lines.Bytes())
	if err != nil {
		return err
	}
	var variables []cel.EnvOption
	for key := range objects {
		variables = append(variables, cel.Variable(key, cel.MapType(cel.StringType, cel.DynType)))
	}
	environment, err := cel.NewEnv(variables...)
	if err != nil {
		return err
	}
	for lines.Scan() {
		var expression string
		if err := json.Unmarshal(lines.Bytes(), &expression); err != nil {
			return err
		}
		line, err := json.Marshal(answer(environment, objects, expression))
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return lines.Err()
}

func answer(environment *cel.Env, objects map[string]any, expression string) string {
	ast, issues := environment.Compile(expression)
	if issues.Err() != nil {
		first, _, _ := strings.Cut(issues.Err().Error(), "\n")
		return "compile: " + first
	}
	program, err := environment.Program(ast)
	if err != nil {
		return "compile: " + err.Error()
	}
	result, _, err := program.Eval(objects)
	if err != nil {
		return "error: " + err.Error()
	}
	if value, is := result.Value().(bool); is {
		return fmt.Sprint(value)
	}
	return "not bool: " + result.Type().TypeName()
}

// read decodes as the clients of Kubernetes do: a number is an int64 if it is written as one, else a float64.
func read(line []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var objects map[string]any
	if err := decoder.Decode(&objects); err != nil {
		return nil, err
	}
	return objects, numbers(objects)
}

func numbers(in map[string]any) error {
	for key, value := range in {
		converted, err := number(value)
		if err != nil {
			return err
		}
		in[key] = converted
	}
	return nil
}

func number(value any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		return value, numbers(value)
	case []any:
		for place, element := range value {
			converted, err := number(element)
			if err != nil {
				return nil, err
			}
			value[place] = converted
		}
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole, nil
		}
		return value.Float64()
	}
	return value, nil
}
