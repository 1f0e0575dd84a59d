// What lives in the workspace: actors, and the parts of what is inspected.
import * as vscode from "vscode";
import type { Actor, Inspection } from "./protocol";
import type { Server } from "./server";

export class Actors implements vscode.TreeDataProvider<Actor> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;

  constructor(private readonly server: Server) {}

  refresh(): void {
    this.changed.fire();
  }

  async getChildren(parent?: Actor): Promise<Actor[]> {
    if (parent || !this.server.can("beamtalk.actors")) return [];
    const { actors } = await this.server.call("beamtalk.actors", {});
    return actors ?? [];
  }

  getTreeItem(actor: Actor): vscode.TreeItem {
    const item = new vscode.TreeItem(actor.name ?? actor.class);
    item.id = actor.id;
    item.description = [actor.name ? actor.class : "", actor.state ?? "", actor.mailbox ? `${actor.mailbox} waiting` : ""].filter(Boolean).join(" · ");
    item.tooltip = `${actor.class} ${actor.id}`;
    item.iconPath = new vscode.ThemeIcon("person");
    item.command = { command: "beamtalk.inspectActor", title: "Inspect", arguments: [actor] };
    return item;
  }
}

type Part = { name: string; value: string; id?: string };

export class Inspector implements vscode.TreeDataProvider<Part> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private root: Part | undefined;

  constructor(private readonly server: Server) {}

  async show(subject: { id: string } | { uri: string; text: string }): Promise<Inspection> {
    const inspection = await this.server.call("beamtalk.inspect", subject);
    this.root = { name: inspection.title, value: inspection.value, ...("id" in subject ? { id: subject.id } : {}) };
    this.first = inspection.parts;
    this.changed.fire();
    return inspection;
  }

  private first: Part[] = [];

  async getChildren(parent?: Part): Promise<Part[]> {
    if (!this.root) return [];
    if (!parent) return [this.root];
    if (parent === this.root) return this.first;
    if (!parent.id) return [];
    return (await this.server.call("beamtalk.inspect", { id: parent.id })).parts;
  }

  getTreeItem(part: Part): vscode.TreeItem {
    const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(part.name, part === this.root ? Expanded : part.id ? Collapsed : None);
    item.description = part.value;
    item.tooltip = part.value;
    return item;
  }
}
