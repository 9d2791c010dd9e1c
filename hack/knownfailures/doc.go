// Package knownfailures holds no code: its test keeps the pages that name tests honest.
package knownfailures
