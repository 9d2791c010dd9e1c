// Package knownfailures holds no code: its test keeps docs/known-failures.md honest.
package knownfailures
