// From one timestamp to another, both included.
export interface Span {
  first: number;
  last: number;
}
