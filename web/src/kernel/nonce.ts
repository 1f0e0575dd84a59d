// The page's policy takes only style elements with its nonce. Libraries make theirs themselves, so the nonce is set
// the moment one is made. Imported before anything else.

const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? "";
const create = Document.prototype.createElement;

Document.prototype.createElement = function (this: Document, name: string, options?: ElementCreationOptions) {
  const element = create.call(this, name, options);
  if (element instanceof HTMLStyleElement) element.nonce = nonce;
  return element;
} as typeof create;

export { nonce };
