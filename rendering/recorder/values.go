package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	goyaml "gopkg.in/yaml.v2"
	"sigs.k8s.io/yaml"
)

// decoded reads JSON as Kubernetes clients do: a number without fraction and exponent is an int64, any other a float64.
func decoded(text []byte) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return withNumbers(value)
}

func withNumbers(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if value[key], err = withNumbers(inner); err != nil {
				return nil, err
			}
		}
	case []any:
		for index, inner := range value {
			if value[index], err = withNumbers(inner); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if whole, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			return whole, nil
		}
		return value.Float64()
	}
	return value, nil
}

// values is what Helm takes as values, as JSON, of what a template writes: the text under the key "values", if there is one,
// else all of it. No document is no values.
func values(text string, root any) (string, error) {
	written, err := output(text, root)
	if err != nil {
		return "", err
	}
	var document any
	if err := goyaml.Unmarshal([]byte(written), &document); err != nil {
		return "", err
	}
	switch document := document.(type) {
	case nil:
		return "{}", nil
	case map[any]any:
		if inner, isText := document["values"].(string); isText {
			written = inner
		}
	default:
		return "", fmt.Errorf("not a mapping but %T", document)
	}
	taken := map[string]any{}
	if err := yaml.Unmarshal([]byte(written), &taken); err != nil {
		return "", err
	}
	line, err := json.Marshal(taken)
	return string(line), err
}

// ofRelease gives a file of a real release: "RELEASE/FILE", or "RELEASE/CHART/FILE" of the archive with its add-ons.
func ofRelease(reference string) (string, error) {
	corpus := os.Getenv("STACKWRIGHT_CORPUS")
	if corpus == "" {
		return "", errors.New("set STACKWRIGHT_CORPUS to the folder with real releases")
	}
	release, file, _ := strings.Cut(reference, "/")
	folder := filepath.Join(corpus, "releases", release)
	if !strings.Contains(file, "/") {
		text, err := os.ReadFile(filepath.Join(folder, file))
		return string(text), err
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*-cluster-addon-*.tgz"))
	if err != nil || len(archives) != 1 {
		return "", fmt.Errorf("%s has no single archive of add-ons: %v", folder, err)
	}
	packed, err := os.Open(archives[0])
	if err != nil {
		return "", err
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return "", err
	}
	for entries := tar.NewReader(unpacked); ; {
		entry, err := entries.Next()
		if err != nil {
			return "", fmt.Errorf("%s has no %s: %w", archives[0], file, err)
		}
		if strings.TrimPrefix(entry.Name, "./") == file {
			text, err := io.ReadAll(entries)
			return string(text), err
		}
	}
}
