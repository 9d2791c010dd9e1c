package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one operator of one file, and what takes its place.
type mutant struct {
	file string
	line int
	// source is the file as it was read, so that it may be edited meanwhile.
	source []byte
	// start and end are the bytes of the operator in its file.
	start, end int
	with       string
	// expression is the source around the operator, on one line.
	expression string
	operator   string
}

// place is where the mutant is, as an editor opens it.
func (m mutant) place() string {
	return fmt.Sprintf("%s:%d", filepath.Join(folder, m.file), m.line)
}

// key names the mutant whatever the lines around it are.
func (m mutant) key() string {
	return m.file + ": " + m.String()
}

func (m mutant) String() string {
	if m.with == "" {
		return m.expression + " without " + m.operator
	}
	return fmt.Sprintf("%s with %s for %s", m.expression, m.with, m.operator)
}

// opposite returns what an operator is turned into: each bound moves by one value, each choice turns around.
func opposite(operator token.Token) (token.Token, bool) {
	pairs := [][2]token.Token{{token.GEQ, token.GTR}, {token.LSS, token.LEQ}, {token.EQL, token.NEQ}, {token.LAND, token.LOR}}
	for _, pair := range pairs {
		switch operator {
		case pair[0]:
			return pair[1], true
		case pair[1]:
			return pair[0], true
		}
	}
	return token.ILLEGAL, false
}

// mutantsOf returns every mutant of the files of a folder, in the order of the source.
func mutantsOf(folder string, files []string) ([]mutant, error) {
	var mutants []mutant
	for _, file := range files {
		path := filepath.Join(folder, file)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		positions := token.NewFileSet()
		tree, err := parser.ParseFile(positions, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			if made, ok := mutantOf(positions, source, node); ok {
				made.file = file
				mutants = append(mutants, made)
			}
			return true
		})
	}
	return mutants, nil
}

func mutantOf(positions *token.FileSet, source []byte, node ast.Node) (mutant, bool) {
	var operator, with token.Token
	var at token.Pos
	switch node := node.(type) {
	case *ast.BinaryExpr:
		opposed, found := opposite(node.Op)
		if !found {
			return mutant{}, false
		}
		operator, with, at = node.Op, opposed, node.OpPos
	case *ast.UnaryExpr:
		if node.Op != token.NOT {
			return mutant{}, false
		}
		operator, at = node.Op, node.OpPos
	default:
		return mutant{}, false
	}
	start := positions.Position(at)
	out := mutant{line: start.Line, source: source, start: start.Offset, end: start.Offset + len(operator.String()), operator: operator.String()}
	if with != token.ILLEGAL {
		out.with = with.String()
	}
	text := source[positions.Position(node.Pos()).Offset:positions.Position(node.End()).Offset]
	out.expression = strings.Join(strings.Fields(string(text)), " ")
	return out, true
}

// apply returns the source with the mutant in it.
func (m mutant) apply() []byte {
	return slices.Concat(m.source[:m.start], []byte(m.with), m.source[m.end:])
}
