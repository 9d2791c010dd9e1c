package v1

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestElementsOfListsKeepUnknownFields(t *testing.T) {
	for name, test := range map[string]struct {
		into    any
		text    string
		unknown UnknownFields
		want    string
	}{
		"none": {&Condition{}, `{"type":"Ready","status":"True"}`, "", `{"type":"Ready","status":"True"}`},
		"of a condition": {
			&Condition{}, `{"type":"Ready","severity":"Low","status":"True"}`, `{"severity":"Low"}`,
			`{"type":"Ready","status":"True","severity":"Low"}`,
		},
		"of a verdict, deep ones": {
			&SignalStatus{}, `{"name":"queue","window":{"seconds":300,"parts":[1,2]}}`, `{"window":{"seconds":300,"parts":[1,2]}}`,
			`{"name":"queue","window":{"seconds":300,"parts":[1,2]}}`,
		},
		"of a finished order, several": {
			&HistoryEntry{}, `{"id":"1","undone":true,"by":"jane","result":"Done"}`, `{"by":"jane","undone":true}`,
			`{"id":"1","result":"Done","by":"jane","undone":true}`,
		},
		"and nothing else":                   {&HistoryEntry{}, `{"by":"jane"}`, `{"by":"jane"}`, `{"by":"jane"}`},
		"by the name that none has":          {&Condition{}, `{"type":"Ready","-":1}`, `{"-":1}`, `{"type":"Ready","-":1}`},
		"that differ in case alone":          {&HistoryEntry{}, `{"id":"1","ID":"2"}`, `{"ID":"2"}`, `{"id":"1","ID":"2"}`},
		"not those that are known and empty": {&HistoryEntry{}, `{"id":"1","message":""}`, "", `{"id":"1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := utiljson.Unmarshal([]byte(test.text), test.into); err != nil {
				t.Fatal(err)
			}
			got := UnknownFields(reflect.ValueOf(test.into).Elem().FieldByName("Unknown").String())
			if difference := cmp.Diff(test.unknown, got); difference != "" {
				t.Errorf("unknown fields (-want +got):\n%s", difference)
			}
			written, err := json.Marshal(test.into)
			if err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(test.want, string(written)); difference != "" {
				t.Errorf("written (-want +got):\n%s", difference)
			}
		})
	}
}

func TestWhatIsNoElementIsRefused(t *testing.T) {
	for _, text := range []string{`["Ready"]`, `{"type":1}`, `{"type":`} {
		if err := utiljson.Unmarshal([]byte(text), &Condition{}); err == nil {
			t.Errorf("%s was decoded", text)
		}
	}
}

// A list that gets elements of a new kind must not forget what an older operator owes to a newer one.
func TestEveryElementOfAListInStatusKeepsUnknownFields(t *testing.T) {
	var elements []string
	visitElements(reflect.TypeFor[AITaskStatus](), false, func(element reflect.Type) {
		elements = append(elements, element.Name())
		into := reflect.New(element).Interface()
		if err := json.Unmarshal([]byte(`{"newer":"field"}`), into); err != nil {
			t.Errorf("%s: %v", element, err)
		}
		if written, err := json.Marshal(into); err != nil || string(written) != `{"newer":"field"}` {
			t.Errorf("%s drops fields that it does not know (%s, %v): give it the methods of unknown.go", element, written, err)
		}
	})
	if difference := cmp.Diff([]string{"Condition", "SignalStatus", "HistoryEntry"}, elements); difference != "" {
		t.Errorf("structs in lists (-want +got):\n%s", difference)
	}
}

// A field that is known and counts as unknown as well would be written twice.
func TestNoKnownFieldOfAnElementCountsAsUnknown(t *testing.T) {
	visitElements(reflect.TypeFor[AITaskStatus](), false, func(element reflect.Type) {
		for _, field := range reflect.VisibleFields(element) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			into := reflect.New(element)
			if err := json.Unmarshal([]byte(`{"`+name+`":null}`), into.Interface()); err != nil {
				t.Errorf("%s: %v", element, err)
			}
			if unknown := into.Elem().FieldByName("Unknown").String(); unknown != "" {
				t.Errorf("%s does not know its own fields %s: see unknown.go", element, unknown)
			}
		}
	})
}

// visitElements calls visit with each struct that is, or is part of, an element of a list.
func visitElements(kind reflect.Type, inList bool, visit func(reflect.Type)) {
	switch kind.Kind() {
	case reflect.Pointer:
		visitElements(kind.Elem(), inList, visit)
	case reflect.Slice:
		visitElements(kind.Elem(), true, visit)
	case reflect.Struct:
		if kind == reflect.TypeFor[Time]() {
			return
		}
		if inList {
			visit(kind)
		}
		for i := range kind.NumField() {
			visitElements(kind.Field(i).Type, inList, visit)
		}
	}
}
