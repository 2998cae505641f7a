/** One of the page's screens. */
export interface View {
  title: string;
  elements: HTMLElement[];
  /** Ends what goes on behind it when it is left. */
  stop?: () => void;
}
